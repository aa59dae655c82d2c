"""The contract of power controls, on a real one of each kind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import boto3
import pytest

from chaos.core.ports import ON_OFF_STATE, PowerControl, RestartPolicyControl
from chaos.machines.driver import power_control_of
from chaos.machines.power.command import CommandPower, make_command_control
from chaos.machines.power.docker import DockerControl
from chaos.machines.transports.containers import Container
from tests.kit.bmcs import PLACE, fake_bmc, sushy, within
from tests.kit.clouds import aws, host_context
from tests.kit.machines import docker_daemon, image, missing


@contextmanager
def programs(folder: Path) -> Iterator[PowerControl]:
    """A machine that is a file."""
    state = folder / "state"
    state.write_text("off\n")

    def set_to(word: str) -> list[str]:
        return ["sh", "-c", 'echo "$1" > "$2"', "pdu", word, str(state)]

    yield make_command_control(
        CommandPower.model_validate(
            {"kind": "command", "on": set_to("on"), "off": set_to("off"), "status": ["cat", str(state)],
             "isOn": {"exit": [0], "output": "^on$"}, "isOff": {"exit": [0], "output": "^off$"}}
        ),
        PLACE,
    )  # fmt: skip


@contextmanager
def container(folder: Path) -> Iterator[PowerControl]:
    """A container whose restart policy would start it again."""
    if why := missing():
        pytest.skip(f"no containers: {why}")
    name = f"nodefall-power-{os.getpid()}"
    with docker_daemon() as docker:
        docker("create", "--name", name, "--network", "none", "--restart", "always", image(docker), "sleep", "100")
        try:
            yield DockerControl(Container(name, "docker"))
        finally:
            docker("rm", "--force", name)


@contextmanager
def bmc(folder: Path) -> Iterator[PowerControl]:
    if not shutil.which("ipmitool"):
        pytest.skip("ipmitool is not installed")
    with fake_bmc(folder) as found:
        yield found


@contextmanager
def instance(folder: Path) -> Iterator[PowerControl]:
    """An instance of EC2 on moto's server, which is off."""
    with aws(folder) as environ, pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        ec2 = boto3.client("ec2", region_name="eu-west-1")
        started = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
        ec2.stop_instances(InstanceIds=[started])
        control = power_control_of(host_context({"kind": "aws", "instance": started, "region": "eu-west-1"}))
        assert control
        yield control


CONTROLS = [sushy, bmc, programs, instance, pytest.param(container, marks=pytest.mark.root)]


@pytest.mark.parametrize("make", CONTROLS)
def test_the_state_follows_on_and_off(
    make: Callable[[Path], AbstractContextManager[PowerControl]], tmp_path: Path
) -> None:
    with make(tmp_path) as control:
        assert control.capabilities >= ON_OFF_STATE
        assert control.state() == "off"
        for verb in (control.off, control.on, control.on, control.off, control.off):  # each twice: no harm
            verb()
            wanted = "on" if verb == control.on else "off"
            within(20, lambda wanted=wanted: control.state() == wanted, f"the machine to be {wanted}")  # type: ignore[misc]
        if isinstance(control, RestartPolicyControl):
            check_restart_policy(control)


def check_restart_policy(control: RestartPolicyControl) -> None:
    """The former policy is read first and passed back later: the control stores nothing."""
    before = control.restart_policy()
    assert before == "always"
    for policy in ("no", "on-failure:3", "unless-stopped", before):
        control.set_restart_policy(policy)
        assert control.restart_policy() == policy
