"""What Windows does with the kubelet before a shutdown: outputs of reg.exe and sc.exe."""

from __future__ import annotations

from typing import Any

import pytest

import chaos.faults.readings.windows
from chaos.core.command import HostCommand
from chaos.core.fact import HostFact
from chaos.core.registry import discover
from chaos.machines.windows_command_line import process_command_line
from tests.kit.win_host import WindowsHost

FACTS: dict[str, HostFact] = discover(chaos.faults.readings.windows, HostFact)
KEY = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\kubelet"
PENDING_KEYS = "".join(
    f"{name} False\r\n" for name in ("PackagesPending", "RebootInProgress", "RebootPending", "RebootRequired")
)
KEYS = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion"
NSSM = r"C:\k\nssm.exe"
QUERY = (
    "\r\nSERVICE_NAME: kubelet\r\n        종류               : 10  WIN32_OWN_PROCESS\r\n"
    "        상태               : 4  RUNNING\r\n                                (STOPPABLE, NOT_PAUSABLE, {})\r\n"
    "        WIN32_EXIT_CODE    : 0  (0x0)\r\n"
)
STOPPED = (
    "\r\nSERVICE_NAME: kubelet\r\n        STATE              : 1  STOPPED\r\n        WIN32_EXIT_CODE    : 0  (0x0)\r\n"
)


def value(name: str, kind: str, data: str) -> str:
    return f"\r\n{KEY}\r\n    {name}    {kind}    {data}\r\n\r\n"


@pytest.mark.parametrize(
    ("name", "stdout", "code", "expected"),
    [
        ("kubelet-binary", value("ImagePath", "REG_EXPAND_SZ", NSSM), 0, NSSM),
        ("kubelet-binary", value("ImagePath", "REG_EXPAND_SZ", "C:\\a b\\k.exe  --x"), 0, "C:\\a b\\k.exe  --x"),
        ("kubelet-shutdown-control", QUERY.format("ACCEPTS_PRESHUTDOWN"), 0, "preshutdown"),
        ("kubelet-shutdown-control", QUERY.format("ACCEPTS_SHUTDOWN"), 0, "shutdown"),
        ("kubelet-shutdown-control", QUERY.format("IGNORES_SHUTDOWN"), 0, "none"),
        ("preshutdown-timeout", value("PreshutdownTimeout", "REG_DWORD", "0x7530"), 0, 30.0),
        ("preshutdown-timeout", "", 1, None),
        ("preshutdown-order", value("PreshutdownOrder", "REG_MULTI_SZ", r"UsoSvc\0kubelet\0containerd"), 0,
         ["UsoSvc", "kubelet", "containerd"]),
        ("preshutdown-order", value("PreshutdownOrder", "REG_MULTI_SZ", ""), 0, []),
        ("preshutdown-order", "", 1, None),
        ("pending-reboot", PENDING_KEYS, 0, []),
        ("pending-reboot", PENDING_KEYS.replace("RebootPending False", "RebootPending True"), 0, ["RebootPending"]),
        ("pending-reboot", PENDING_KEYS.replace("False", "True"), 0,
         ["PackagesPending", "RebootInProgress", "RebootPending", "RebootRequired"]),
    ],
)  # fmt: skip
def test_outputs_of_windows(name: str, stdout: str, code: int, expected: Any) -> None:
    assert FACTS[name].parse(stdout, code) == expected


@pytest.mark.parametrize(
    ("name", "stdout", "code"),
    [
        ("kubelet-binary", "", 1),
        ("kubelet-binary", value("Start", "REG_DWORD", "0x2"), 0),
        ("kubelet-shutdown-control", "[SC] EnumQueryServicesStatus:OpenService FAILED 1060:\r\n", 1060),
        ("kubelet-shutdown-control", STOPPED, 0),
        ("kubelet-shutdown-control", "", 5),
        ("preshutdown-timeout", value("PreshutdownTimeout", "REG_SZ", "ten"), 0),
        ("preshutdown-timeout", "", 5),
        ("preshutdown-order", "", 0),
        ("pending-reboot", PENDING_KEYS, 1),
        ("pending-reboot", "", 0),
        ("pending-reboot", PENDING_KEYS.replace("False", "maybe"), 0),
    ],
)
def test_outputs_that_are_not_understood(name: str, stdout: str, code: int) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        FACTS[name].parse(stdout, code)


def read(host: WindowsHost, name: str) -> Any:
    """The fact as the simulated machine's programs print it."""
    command: HostCommand = FACTS[name].command_for({})
    code, stdout, _ = host.run(str(process_command_line(command.argv)), cmd=False)
    return FACTS[name].parse(stdout, code)


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("service", ["kubelet.exe", "preshutdown", 30.0, True]),
        ("nssm", ["nssm.exe", "shutdown", None, False]),
    ],
)
def test_facts_of_a_simulated_host(service: str, expected: list[Any]) -> None:
    host = WindowsHost(kubelet_service=service)
    binary, order = read(host, "kubelet-binary"), read(host, "preshutdown-order")
    found = [read(host, "kubelet-shutdown-control"), read(host, "preshutdown-timeout"), "kubelet" in order]
    assert [binary.split()[0].rpartition("\\")[2], *found] == expected


@pytest.mark.parametrize(
    ("key", "mark"),
    [
        (r"Component Based Servicing\PackagesPending", "PackagesPending"),
        (r"Component Based Servicing\RebootInProgress", "RebootInProgress"),
        (r"Component Based Servicing\RebootPending", "RebootPending"),
        (r"WindowsUpdate\Auto Update\RebootRequired", "RebootRequired"),
    ],
)
def test_the_mark_of_an_update(key: str, mark: str) -> None:
    host = WindowsHost()
    assert read(host, "pending-reboot") == []
    host.machine.registry.create(rf"{KEYS}\{key}")
    assert read(host, "pending-reboot") == [mark]
