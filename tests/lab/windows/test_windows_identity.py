"""What identifies a Windows machine agrees with what its kubelet reports, and the sources of its state."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from chaos.faults.readings.certificates import find_kubelet_user
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec
from chaos.lab.windows.disk import PREFETCH, SERVICES
from chaos.lab.windows.machine import WindowsMachine
from tests.kit.win_host import WindowsHost

CERTIFICATE = r"C:\var\lib\kubelet\pki\kubelet-client-current.pem"


@pytest.fixture(scope="module")
def host() -> WindowsHost:
    return WindowsHost()


def _registry(host: WindowsHost, key: str, name: str) -> str:
    code, out, _ = host.run(f'reg.exe query "{key}" /v {name}')
    assert code == 0
    return out.split()[-1]


def test_the_nodes_identity(host: WindowsHost) -> None:
    """winstats: machineID is the host name, systemUUID LastConfig in capitals, bootID the decimal BootId."""
    node = host.cluster.store.get("nodes", "", "win1")
    assert node is not None
    info = node["status"]["nodeInfo"]
    last = _registry(host, r"HKLM\SYSTEM\HardwareConfig", "LastConfig")
    assert info["systemUUID"] == last.strip("{}").upper() == str(uuid.UUID(last)).upper()
    assert host.run("hostname.exe")[1].strip() == info["machineID"]
    assert str(int(_registry(host, PREFETCH, "BootId"), 16)) == info["bootID"]


def test_the_addresses(host: WindowsHost) -> None:
    own = host.machine.network.resolve("win1")
    assert host.script("list-addresses")[1].split() == [*own.values(), "127.0.0.1", "::1"]


@pytest.mark.parametrize("service", ["service", "nssm"])
def test_the_kubelets_process(service: str) -> None:
    host = WindowsHost(kubelet_service=service)
    binary = host.run(rf"reg.exe query {SERVICES}\kubelet /v ImagePath")[1]
    assert (("--windows-service" in binary), ("nssm.exe" in binary)) == (service == "service", service == "nssm")
    queried = host.run("sc.exe queryex kubelet")[1].split()
    assert queried[queried.index("PID") + 2] == str(host.machine.services.get("kubelet").pid) != "0"
    host.stop("kubelet")
    queried = host.run("sc.exe queryex kubelet")[1].split()
    assert queried[queried.index("PID") + 2] == "0"


def test_the_kubelets_client_certificate(host: WindowsHost) -> None:
    code, out, _ = host.script("read-certificates", files=[CERTIFICATE, r"C:\nope.pem"])
    assert (code, out.count("BEGIN CERTIFICATE"), "PRIVATE" in out) == (0, 1, False)
    assert find_kubelet_user(out) == "system:node:win1"


@pytest.mark.parametrize(
    ("identity", "has_certificate", "flag"),
    [("certificate", True, ""), ("hostname-override", False, "--hostname-override=win1"), ("none", False, "")],
)
def test_the_kubelets_identity(identity: Any, has_certificate: bool, flag: str) -> None:
    nodes = [NodeSpec(name="cp", role="control-plane"), NodeSpec(name="win1", os="windows")]
    spec = LabSpec(nodes=nodes, kubelet_identity=identity)
    machine = Cluster(spec).machines["win1"]
    assert isinstance(machine, WindowsMachine)
    assert ("/var/lib/kubelet/pki/kubelet-client-current.pem" in machine.files) is has_certificate
    assert flag in machine.services.get("kubelet").binary
