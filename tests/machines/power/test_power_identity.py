"""What each power control reports of the machine that it switches."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.cluster.cluster_state import UnknownFact
from chaos.core.action import FactCheck
from chaos.core.errors import NodefallError, Unreachable
from chaos.core.ports import MachineIdentity, PowerControl
from chaos.core.power_identity import PowerIdentity
from chaos.machines.pool import Hosts
from chaos.machines.power.command import CommandPower, make_command_control
from chaos.machines.power.docker import DockerControl
from chaos.machines.power.ipmi import IpmiControl, make_ipmi_control
from chaos.machines.power.manual import ManualControl
from chaos.machines.power.wake_on_lan import WakeOnLanPower, make_wake_on_lan_control
from chaos.machines.transports.docker import Container
from tests.kit.bmcs import PLACE, SYSTEM, fake_bmc, ipmi_power, sushy
from tests.kit.fakes import FakeClock, FakeKube

GUID = "4c4c4544-0042-3510-8034-b3c04f584332"


def test_redfish_reports_the_uuid_of_its_system(tmp_path: Path) -> None:
    with sushy(tmp_path) as control:
        assert isinstance(control, MachineIdentity)
        assert control.identity() == PowerIdentity(SYSTEM)
        assert control.identity().key == SYSTEM


@pytest.mark.skipif(not shutil.which("ipmitool"), reason="ipmitool is not installed")
def test_a_bmc_without_the_command_is_unknown(tmp_path: Path) -> None:
    with fake_bmc(tmp_path) as control:
        assert isinstance(control, MachineIdentity)
        assert control.identity() == PowerIdentity()


def ipmitool(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> IpmiControl:
    program = folder / "ipmitool"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/argv\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return make_ipmi_control(ipmi_power(623), PLACE, timeout=20)


NEW = f"echo 'System GUID  : {GUID}'; echo 'GUID Encoding: SMBIOS'"  # ipmitool 1.8.19
OLD = f"echo 'System GUID  : {GUID.upper()}'; echo 'Timestamp    : 08/04/2010 11:14:28'"


@pytest.mark.parametrize(
    ("script", "uuid"),
    [
        (NEW, GUID),
        (OLD, GUID),
        ("echo 'GUID data is invalid'", ""),
        ("echo 'Get GUID command failed: Invalid command' >&2; exit 1", ""),
        ("echo 'System GUID  : 4c4c4544'", ""),
    ],
)
def test_ipmi_reports_the_system_guid(script: str, uuid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ipmitool(tmp_path, script, monkeypatch).identity() == PowerIdentity(uuid)
    assert (tmp_path / "argv").read_text().rstrip().endswith("mc guid smbios")


def test_an_ipmi_bmc_that_rejects_the_login_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreachable, match="rejected the login"):
        ipmitool(tmp_path, "echo Unable to establish LAN session >&2; exit 1", monkeypatch).identity()


def docker(folder: Path, output: str, monkeypatch: pytest.MonkeyPatch) -> DockerControl:
    (folder / "output").write_text(output)
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\ncat {folder}/output\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return DockerControl(Container("kind-worker", "docker"))


NETWORKS = {"kind": {"IPAddress": "172.18.0.3", "GlobalIPv6Address": "fc00::3"}, "off": {"IPAddress": ""}}


@pytest.mark.parametrize(
    ("networks", "addresses"), [(NETWORKS, ("172.18.0.3", "fc00::3")), ({}, ()), (None, ()), ({"none": {}}, ())]
)
def test_docker_reports_names_and_addresses(
    networks: object, addresses: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = json.dumps({"id": "0123abcd", "name": "/kind-worker", "hostname": "worker.local", "networks": networks})
    found = docker(tmp_path, output, monkeypatch).identity()
    assert found == PowerIdentity("", ("kind-worker", "worker.local"), addresses, "0123abcd")
    assert found.key == "0123abcd"  # another one if it is recreated with the same name


BRIDGE = {
    "IPAddress": "172.18.0.3", "IPPrefixLen": 16, "GlobalIPv6Address": "fc00::3", "GlobalIPv6PrefixLen": 64
}  # fmt: skip


@pytest.mark.parametrize(
    ("networks", "interfaces"),
    [
        ({"kind": BRIDGE}, ("172.18.0.3/16", "fc00::3/64")),
        ({"kind": BRIDGE, "more": {"IPAddress": "10.1.0.2", "IPPrefixLen": 24}}, (
            "172.18.0.3/16", "fc00::3/64", "10.1.0.2/24",
        )),
        (NETWORKS, ("172.18.0.3", "fc00::3")),
        ({"kind": {"IPAddress": "", "IPPrefixLen": 0}}, ()),
        (None, ()),
    ],
)  # fmt: skip
def test_docker_reports_the_present_addresses_with_their_networks(
    networks: object, interfaces: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = json.dumps({"id": "0123abcd", "name": "/kind-worker", "hostname": "worker.local", "networks": networks})
    assert docker(tmp_path, output, monkeypatch).interfaces() == interfaces


def test_docker_output_that_is_not_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NodefallError, match="inspect kind-worker cannot be parsed"):
        docker(tmp_path, "{", monkeypatch).identity()


def command() -> PowerControl:
    fields = {"kind": "command", "on": ["true"], "status": ["true"], "isOn": {"exit": [0]}, "isOff": {"exit": [1]}}
    return make_command_control(CommandPower.model_validate(fields), PLACE)


def wake_on_lan() -> PowerControl:
    return make_wake_on_lan_control(WakeOnLanPower.model_validate({"kind": "wake-on-lan", "mac": "00:11:22:33:44:55"}))


@pytest.mark.parametrize("make", [command, wake_on_lan, lambda: ManualControl("n1", 1.0, "/dev/null")])
def test_the_others_know_nothing_of_the_machine(make: Callable[[], PowerControl]) -> None:
    assert not isinstance(make(), MachineIdentity)


class Reporting:
    """A power control whose identity is ``identity``."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self, identity: PowerIdentity) -> None:
        self._identity = identity

    def identity(self) -> PowerIdentity:
        return self._identity


@pytest.mark.parametrize(
    ("power", "value", "holds"),
    [
        (Reporting(PowerIdentity(GUID)), GUID, True),
        (Reporting(PowerIdentity(GUID)), SYSTEM, False),
        (Reporting(PowerIdentity()), GUID, False),
        (command(), GUID, False),
        (None, GUID, False),
    ],
)
def test_the_identity_is_a_fact(power: PowerControl | None, value: str, holds: bool) -> None:
    hosts = Hosts(lambda _: 1 / 0, lambda _: power, FakeKube({}), {}, FakeClock())  # type: ignore[arg-type,return-value]
    assert hosts.check("n1", FactCheck("power-identity", value))[0] is holds
    if not hosts.power_identity("n1").key:
        with pytest.raises(UnknownFact, match="power-identity of n1: its power control does not report one"):
            hosts.read("n1", "power-identity")
