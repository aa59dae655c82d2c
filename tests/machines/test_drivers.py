"""Drivers of transports and power controls: those of nodefall, and those of another distribution."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import pytest

from chaos.core.driver import file_keys
from chaos.core.errors import Refused
from chaos.core.field_types import Model
from chaos.core.installed_drivers import power_drivers, transport_drivers
from chaos.core.inventory import Inventory
from chaos.core.ports import Session
from chaos.machines.driver import (
    HostContext,
    PowerDriver,
    SharedObjects,
    TransportDriver,
    power_control_of,
    transport_of,
)
from chaos.machines.local import SecretContext
from chaos.machines.power.wake_on_lan import WakeOnLanControl
from chaos.machines.sessions.settings import LocalUser
from chaos.machines.transports.docker import DockerSession

LOCAL = LocalUser("ops", Path("/home/ops"))
HEAD = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "i"}}
OUTSIDE = """
    from pathlib import Path

    from typing import Literal

    from chaos.machines.driver import PowerDriver, TransportDriver
    from chaos.core.driver import FilePath, PowerSettings
    from chaos.core.field_types import Model
    from chaos.core.field_types import Secret


    class Settings(PowerSettings):
        kind: Literal["pdu"]
        outlet: int
        token: Secret
        caFile: FilePath


    class Pdu:
        capabilities = frozenset({"on"})

        def __init__(self, outlet, node):
            self.label = f"outlet {outlet} of {node}"


    class Options(Model):
        device: str
        baud: int = 9600


    class Serial(TransportDriver):
        name = "serial"
        options = Options

        def open_session(self, host):
            return self.options_of(host)


    PDU = PowerDriver("pdu", Settings, lambda power, host: Pdu(power.outlet, host.node))
    SERIAL = Serial()
"""
POINTS = """
    [nodefall.power]
    pdu = outside_drivers:PDU
    [nodefall.transports]
    serial = outside_drivers:SERIAL
"""
SCRIPT = """
    import json, sys
    from pathlib import Path

    from chaos.machines.driver import HostContext, power_control_of, transport_of
    from chaos.machines.sessions.settings import LocalUser
    from chaos.documents.inventory import load_inventory
    from chaos.core.errors import BadInput

    try:
        inventory = load_inventory(Path(sys.argv[1]))
    except BadInput as error:
        print(json.dumps([f"{problem.line}: {problem.message}" for problem in error.problems]))
        sys.exit()
    host = HostContext(inventory, "a", "a", LocalUser("ops", Path("/home/ops")))
    power = host.host.power
    session = transport_of(host).open_session(host)
    print(json.dumps([power_control_of(host).label, power.token.file, power.caFile, session.device, session.baud]))
"""
INVENTORY = """
    apiVersion: nodefall.dev/v1alpha1
    kind: Inventory
    metadata: {name: i}
    cluster: {kubeconfig: k}
    defaults: {transport: serial, options: {baud: 115200}}
    hosts:
      a:
        options: {device: /dev/ttyS0}
        power:
          kind: pdu
          outlet: 7
          token: {file: secret}
          caFile: ca.pem
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory of sys.path in which another distribution is installed."""
    (tmp_path / "outside_drivers.py").write_text(dedent(OUTSIDE))
    info = tmp_path / "outside_drivers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-drivers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(dedent(POINTS))
    return tmp_path


def load(outside: Path, text: str) -> Any:
    path = outside / "inventory.yaml"
    path.write_text(dedent(text))
    path.chmod(0o644)
    script = dedent(SCRIPT)
    process = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env={**os.environ, "PYTHONPATH": str(outside)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_drivers_of_another_distribution(outside: Path) -> None:
    folder = str(outside)
    assert load(outside, INVENTORY) == [
        "outlet 7 of a", f"{folder}/secret", f"{folder}/ca.pem", "/dev/ttyS0", 115200,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        ("outlet: 7", "outlet: x", ["12: expected a whole number, got the text 'x'"]),
        ("outlet: 7", "oulet: 7", ["10: missing key 'outlet'", "12: unknown key 'oulet'"]),
        (
            "kind: pdu",
            "kind: pdo",
            [
                (
                    "11: expected 'aws', 'azure', 'command', 'docker', 'gcp', 'ipmi', 'libvirt', 'manual', "
                    "'openstack', 'pdu', 'proxmox', 'redfish', 'vsphere', 'wake-on-lan', got the text 'pdo'"
                )
            ],
        ),
        ("device: /dev/ttyS0", "devise: x", ["9: missing key 'device'", "9: unknown key 'devise'"]),
        (
            "transport: serial",
            "transport: cereal",
            ["6: expected 'ssh', 'docker', 'openssh', 'pod', 'serial' or 'winrm', got the text 'cereal'"],
        ),
        ("transport: serial", "transport: ssh", ["9: transport ssh has no options"]),
        ("options: {device: /dev/ttyS0}", "os: linux", ["6: missing key 'device'"]),
    ],
)
def test_errors_of_their_settings_have_a_line(outside: Path, old: str, new: str, problems: list[str]) -> None:
    assert load(outside, INVENTORY.replace(old, new)) == problems


def test_options_that_are_missing_altogether(outside: Path) -> None:
    text = INVENTORY.replace(", options: {baud: 115200}", "").replace("options: {device: /dev/ttyS0}", "os: linux")
    assert load(outside, text) == ["9: missing key 'device'"]


def test_options_of_a_node_that_the_inventory_does_not_list() -> None:
    class Options(Model):
        device: str

    class Serial(TransportDriver):
        name = "serial"
        options = Options

        def open_session(self, host: HostContext) -> Session:
            raise AssertionError(self.options_of(host))

    with pytest.raises(Refused, match="options of node-a for transport serial: device: Field required"):
        Serial().open_session(context({}))


def test_a_second_driver_of_that_name_is_an_error(outside: Path) -> None:
    text = dedent(POINTS).replace("pdu = outside_drivers:PDU", "pdu = outside_drivers:PDU\nother = outside_drivers:PDU")
    (outside / "outside_drivers-1.0.dist-info" / "entry_points.txt").write_text(text)
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            "import chaos.machines; from chaos.core.installed_drivers import power_drivers; power_drivers()",
        ],
        env={**os.environ, "PYTHONPATH": str(outside)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "duplicate plug-in name 'pdu'" in process.stderr
    assert "outside-drivers 1.0" in process.stderr


def context(host: dict[str, Any], **more: Any) -> HostContext:
    inventory = Inventory.model_validate({**HEAD, "cluster": {"kubeconfig": "k"}, "hosts": {"a": host}, **more})
    return HostContext(inventory, "a", "node-a", LOCAL)


def test_contract_of_built_in_drivers() -> None:
    for name, driver in power_drivers().items():
        assert isinstance(driver, PowerDriver)
        assert get_args(driver.settings.model_fields["kind"].annotation) == (name,)
    for name, driver in transport_drivers().items():
        assert isinstance(driver, TransportDriver)
        assert driver.name == name


def test_the_transport_of_a_host_is_its_own_else_the_default() -> None:
    assert transport_of(context({})).name == "ssh"
    assert transport_of(context({}, defaults={"transport": "docker"})).name == "docker"
    assert transport_of(context({"transport": "ssh"}, defaults={"transport": "docker"})).name == "ssh"


def test_sudo_and_jump_hosts_are_the_drivers_affair() -> None:
    jumping = context({"user": "chaos", "proxyJump": ["jump@bastion"]})
    assert transport_of(jumping).sudo_user(jumping) == "chaos"
    assert [jump.address for jump in transport_of(jumping).jump_hosts(jumping)] == ["bastion"]
    root = context({"user": "root"})
    assert transport_of(root).sudo_user(root) == ""
    container = context({"transport": "docker", "user": "chaos", "proxyJump": ["jump@bastion"]})
    assert transport_of(container).sudo_user(container) == ""
    assert transport_of(container).jump_hosts(container) == ()


def test_power_control_of_a_host() -> None:
    assert power_control_of(context({})) is None
    assert isinstance(
        power_control_of(context({"power": {"kind": "wake-on-lan", "mac": "525400123456"}})), WakeOnLanControl
    )
    unusable = context({"power": {"kind": "redfish", "url": "https://bmc/redfish/v1/1", "caFile": "/nowhere.pem"}})
    with pytest.raises(Refused, match="caFile"):
        power_control_of(unusable)


def test_session_and_power_of_a_container_share_its_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    host = context({"transport": "docker", "power": {"kind": "docker"}})
    session, control = transport_of(host).open_session(host), power_control_of(host)
    assert isinstance(session, DockerSession)
    assert session._container is control._container  # type: ignore[union-attr]
    assert session._container.name == "node-a"


@pytest.mark.parametrize("hosts", [{}, {"w1": {"user": "x"}}], ids=["none listed", "listed without power"])
def test_nodes_that_are_containers_need_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: dict[str, Any]
) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    more = {"cluster": {"kubeconfig": "k"}, "defaults": {"transport": "docker", "power": {"kind": "docker"}}}
    inventory = Inventory.model_validate(HEAD | more | {"hosts": hosts})
    host = HostContext(inventory, inventory.host_of("w1")[0], "w1", LOCAL)
    session, control = transport_of(host).open_session(host), power_control_of(host)
    assert isinstance(session, DockerSession)
    assert session.label == "docker container w1"
    assert session._container is control._container  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("power", "allowed"),
    [
        ({"kind": "docker"}, True),
        ({"kind": "docker", "engine": "podman"}, True),
        ({"kind": "manual"}, True),
        ({"kind": "docker", "container": "w1"}, False),
        ({"kind": "docker", "identity": "w1"}, False),
        ({"kind": "wake-on-lan", "mac": "525400123456"}, False),
        ({"kind": "redfish", "url": "https://bmc/redfish/v1/Systems/1"}, False),
    ],
)
def test_only_power_of_any_machine_may_be_a_default(power: dict[str, Any], allowed: bool) -> None:
    document = HEAD | {"cluster": {"kubeconfig": "k"}, "defaults": {"power": power}}
    if allowed:
        own = {"kind": "wake-on-lan", "mac": "525400123456"}
        inventory = Inventory.model_validate(document | {"hosts": {"a": {"power": own}}})
        found = [entry.power.kind if entry.power else "" for entry in map(inventory.host, ("a", "b"))]
        assert found == ["wake-on-lan", power["kind"]]
    else:
        with pytest.raises(ValueError, match=f"power of kind {power['kind']} belongs to a single machine here"):
            Inventory.model_validate(document)


def test_shared_objects_are_made_once() -> None:
    shared, made = SharedObjects(), []
    for key in ("a", "b", "a"):
        shared.get(key, lambda key=key: made.append(key))  # type: ignore[misc]
    assert made == ["a", "b"]


def test_files_of_settings() -> None:
    keys = {name: sorted(file_keys(driver.settings)) for name, driver in power_drivers().items()}
    assert keys["redfish"] == [("caFile",), ("password", "file")]
    assert keys["command"] == [("environment", "*", "file")]
    assert keys["docker"] == []
    assert SecretContext({}, Path("/home/ops"), Path("/etc")).path("x") == Path("/etc/x")
