"""What identifies a Windows machine agrees with what its kubelet reports, and the sources of its state."""

from __future__ import annotations

import csv
import io
import json
import uuid
from typing import Any

import pytest

from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec
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
    assert host.powershell("(Get-CimInstance Win32_ComputerSystemProduct).UUID")[1].strip() == info["systemUUID"]
    names = {host.run("hostname.exe")[1].strip(), host.powershell("[Net.Dns]::GetHostName()")[1].strip()}
    assert names == {info["machineID"]}
    key = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"
    assert str(int(_registry(host, key, "BootId"), 16)) == info["bootID"]
    guid = _registry(host, r"HKLM\SOFTWARE\Microsoft\Cryptography", "MachineGuid")
    assert str(uuid.UUID(guid)) == guid != last.strip("{}")


def test_the_kubelets_client_certificate(host: WindowsHost) -> None:
    code, out, _ = host.run(f"certutil.exe -dump {CERTIFICATE}")
    assert (code, {"    CN=system:node:win1", "    O=system:nodes"} <= set(out.split("\r\n"))) == (0, True)
    name = "Security.Cryptography.X509Certificates.X509Certificate2"
    script = f"$c = New-Object {name} '{CERTIFICATE}'; $c.Subject; $c.Thumbprint.Length; $c.NotAfter.Year"
    assert host.powershell(script) == (0, "CN=system:node:win1, O=system:nodes\r\n40\r\n2120\r\n", "")
    assert host.powershell(f"[{name}]::new('C:\\nope.pem')")[0] == 1
    assert host.run(r"certutil.exe -dump C:\nope.pem")[0] & 0xFFFFFFFF == 0x80070002


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


def test_addresses_and_connections(host: WindowsHost) -> None:
    own = host.machine.network.resolve("win1")
    found = host.powershell("$ProgressPreference = 'SilentlyContinue'; (Get-NetIPAddress).IPAddress")[1].split()
    assert found == [*own.values(), "127.0.0.1", "::1"]
    out = host.run("ipconfig.exe")[1]
    assert all(address in out for address in own.values())
    rows = [line.split() for line in host.run("netstat.exe -ano")[1].splitlines() if line.startswith("  TCP")]
    family = host.machine.kubelet.connection_family
    assert family is not None
    server = host.machine.network.server_addresses[family]
    pid = str(host.machine.services.get("kubelet").pid)
    assert [row[4] for row in rows if server in row[2] and row[3] == "ESTABLISHED"] == [pid]
    assert {"0.0.0.0:5985", "0.0.0.0:22", "0.0.0.0:10250"} <= {row[1] for row in rows if row[3] == "LISTENING"}
    script = "Get-NetTCPConnection -State Established -RemotePort 6443 | Select-Object RemoteAddress, OwningProcess"
    script = f"$ProgressPreference = 'SilentlyContinue'; {script} | ConvertTo-Json -Compress"
    assert json.loads(host.powershell(script)[1]) == {"RemoteAddress": server, "OwningProcess": int(pid)}


@pytest.mark.parametrize("service", ["service", "nssm"])
def test_the_kubelets_process(service: str) -> None:
    host = WindowsHost(kubelet_service=service)
    started = host.machine.services.get("kubelet").started_at
    script = "$p = Get-Process kubelet; $p.Id; ($p.StartTime.ToUniversalTime().Ticks - 621355968000000000) / 10000000"
    identity, start = host.powershell(script)[1].split()
    assert float(start) == pytest.approx(started, abs=0.001)
    rows = list(csv.reader(io.StringIO(host.run('tasklist.exe /fo csv /nh /fi "IMAGENAME eq kubelet.exe"')[1])))
    assert [row[:2] for row in rows] == [["kubelet.exe", identity]]
    wmi = "(Get-CimInstance Win32_Process -Filter \"Name='kubelet.exe'\").CommandLine"
    assert ("--windows-service" in host.powershell(wmi)[1]) is (service == "service")
    queried = host.run("sc.exe queryex kubelet")[1].split()
    assert (queried[queried.index("PID") + 2] == identity) is (service == "service")
    host.run("sc.exe stop kubelet")
    host.wait(5.0)
    assert "NoProcessFoundForGivenName" in host.powershell("Get-Process kubelet")[2]
    assert host.run('tasklist.exe /fo csv /nh /fi "IMAGENAME eq kubelet.exe"')[1].startswith("INFO: ")


def test_free_disk() -> None:
    host = WindowsHost(capacity={"ephemeral-storage": "100Gi"})
    by_wmi = "Get-CimInstance Win32_LogicalDisk -Filter \"DeviceID='C:'\" | Select-Object Size, FreeSpace"
    row = json.loads(host.powershell(f"$ProgressPreference = 'SilentlyContinue'; {by_wmi} | ConvertTo-Json")[1])
    assert row["Size"] == 100 << 30
    assert (
        host.powershell("(Get-PSDrive C).Free; [IO.DriveInfo]::new('C').AvailableFreeSpace")[1].split()
        == [str(row["FreeSpace"])] * 2
    )
    host.machine.pressure.add("disk")
    assert int(host.powershell("(Get-PSDrive C).Free")[1]) < row["FreeSpace"]


def test_no_reboot_is_pending_until_a_key_exists(host: WindowsHost) -> None:
    servicing = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing"
    assert host.run(f'reg.exe query "{servicing}\\RebootPending"')[0] == 1
    assert host.run(f'reg.exe query "{servicing}"')[0] == 0
    assert host.run(f'reg.exe add "{servicing}\\RebootPending" /f')[0] == 0
    assert host.run(f'reg.exe query "{servicing}\\RebootPending"')[0] == 0
    policies = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System"
    assert host.run(f"reg.exe query {policies} /v LocalAccountTokenFilterPolicy")[0] == 1
