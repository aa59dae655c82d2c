"""The contract of power controls, on a real one of each kind.

A plain installation neither has nor imports an SDK of a cloud.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from chaos.core.errors import Refused
from chaos.core.field_types import Secret
from chaos.core.installed_drivers import power_drivers
from chaos.core.ports import ON_OFF_STATE, PowerControl, RestartPolicyControl
from chaos.machines.driver import power_control_of
from chaos.machines.local import SecretContext, read_secret
from chaos.machines.power.command import CommandPower, make_command_control
from chaos.machines.power.docker import DockerControl
from chaos.machines.transports.docker import Container
from tests.kit.bmcs import PLACE, fake_bmc, sushy, within
from tests.kit.clouds import aws, host_context
from tests.kit.machines import docker_daemon, image, missing

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SDKS = {  # by kind and extra: the packages that are imported
    "aws": ("boto3", "botocore"),
    "azure": ("azure", "msal"),
    "gcp": ("google",),
    "libvirt": ("libvirt",),
    "openstack": ("openstack", "keystoneauth1"),
    "proxmox": ("proxmoxer",),
    "vsphere": ("pyVmomi", "pyVim"),
}
HIDDEN = "hunter2-secret"


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


@pytest.mark.parametrize("kind", SDKS)
def test_each_is_an_extra_of_its_kind_only(kind: str) -> None:
    assert kind in power_drivers()
    names = [requirement.partition(">")[0] for requirement in PROJECT["optional-dependencies"][kind]]
    required = " ".join(PROJECT["dependencies"])
    assert names
    assert not [name for name in names if name in required]


def test_none_is_imported_to_load_drivers_and_inventories() -> None:
    """Even where all are installed: their import takes up to a second."""
    code = (
        "import sys; from chaos.core.installed_drivers import power_drivers; import chaos.app.wiring.connect\n"
        "import chaos.machines.pool\n"
        "from chaos.engine.registry import load_registry; from chaos.documents.schema import json_schema\n"
        "json_schema(load_registry()); power_drivers()\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tops = {name.partition(".")[0] for name in loaded.split()}
    assert "chaos" in tops
    assert not tops & {package for packages in SDKS.values() for package in packages}


def read(folder: Path, **fields: Any) -> str:
    return read_secret(Secret(**fields), SecretContext({"PW": HIDDEN, "EMPTY": ""}, folder, folder))


def test_env(tmp_path: Path) -> None:
    assert read(tmp_path, env="PW") == HIDDEN


@pytest.mark.parametrize(
    ("content", "expected"), [(HIDDEN, HIDDEN), (HIDDEN + "\n", HIDDEN), (" a b \n\n", " a b \n"), ("x\r\n", "x")]
)
@pytest.mark.parametrize("name", ["pw", "~/pw"])
def test_file(tmp_path: Path, content: str, expected: str, name: str) -> None:
    path = tmp_path / "pw"
    path.write_bytes(content.encode())
    path.chmod(0o600)
    assert read(tmp_path, file=name) == expected


def test_command_is_run_without_a_shell(tmp_path: Path) -> None:
    assert read(tmp_path, command=["printf", "%s\\n", "$HOME;x"]) == "$HOME;x"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"env": "NONE"}, "environment variable NONE is not set"),
        ({"env": "EMPTY"}, "not set or empty"),
        ({"file": "none"}, "cannot be read: No such file"),
        ({"file": "."}, "not a regular file"),
        ({"file": "binary"}, "is not UTF-8"),
        ({"file": "loose"}, "not trusted: any user may write this file"),
        ({"command": ["no-such-program-here"]}, "failed: No such file"),
        ({"command": ["sh", "-c", f"echo {HIDDEN}; echo {HIDDEN} >&2; exit 3"]}, "'sh' ended with exit code 3"),
        ({"command": ["true"]}, "not set or empty"),
        ({"command": ["printf", "\\377"]}, "its output is not UTF-8 text"),
    ],
)
def test_refused_without_the_secret(
    tmp_path: Path, fields: dict[str, Any], error: str, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    for name, content, mode in (("binary", b"\xff" + HIDDEN.encode(), 0o600), ("loose", HIDDEN.encode(), 0o666)):
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(mode)
    with caplog.at_level(logging.DEBUG), pytest.raises(Refused, match=error) as caught:
        read(tmp_path, **fields)
    assert HIDDEN not in f"{caught.value!r} {caught.value.hint} {caught.value.__cause__!r} {caplog.text}"
