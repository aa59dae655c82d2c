"""Identity of a Windows machine and its kubelet, and whether it boots after a bug check."""

from __future__ import annotations

import pytest

from chaos.engine.registry import load_windows_facts
from chaos.faults.readings.windows.identity import CLIENT_CERTIFICATES, kubelet_user
from chaos.lab.node.kubelet.apiserver_link import client_certificate
from chaos.lab.windows.disk import write_file
from chaos.machines.windows_command_line import quote_argument
from tests.kit.win_host import WindowsHost

NODE = client_certificate("win-1").replace("\n", "\r\n")
KEY = r"HKEY_LOCAL_MACHINE\SYSTEM"


def value(name: str, kind: str, data: str) -> str:
    """As reg.exe prints one."""
    return f"\r\n{KEY}\r\n    {name}    {kind}    {data}\r\n\r\n"


ADDRESSES = "fe80::5efe:10.0.0.5%7\r\n10.0.0.5\r\n::1\r\nfd00::5\r\n127.0.0.1\r\n169.254.3.4\r\n10.0.0.5\r\n"


@pytest.mark.parametrize(
    ("fact", "stdout", "expected"),
    [
        (
            "system-uuid",
            value("LastConfig", "REG_SZ", "{4C4C4544-0042-3510-8034-B3C04F584332}"),
            "4c4c4544-0042-3510-8034-b3c04f584332",
        ),
        ("host-addresses", ADDRESSES, ["10.0.0.5", "fd00::5"]),
        ("crash-auto-reboot", value("AutoReboot", "REG_DWORD", "0x1"), True),
        ("crash-auto-reboot", value("AutoReboot", "REG_DWORD", "0x0"), False),
        ("kubelet-user", NODE, "system:node:win-1"),
        ("kubelet-user", NODE + NODE, "system:node:win-1"),  # two of the paths lead to one file
    ],
)
def test_values(fact: str, stdout: str, expected: object) -> None:
    assert load_windows_facts()[fact].parse(stdout, 0) == expected


@pytest.mark.parametrize(
    ("fact", "stdout", "exit_code"),
    [
        ("system-uuid", "ERROR: not found\r\n", 1),
        ("host-addresses", "", 0),
        ("host-addresses", "10.0.0.5", 1),
        ("host-addresses", "IPAddress\r\n", 0),
        ("crash-auto-reboot", "", 1),
        ("crash-auto-reboot", value("AutoReboot", "REG_SZ", "yes"), 0),
        ("kubelet-user", "", 0),
        ("kubelet-user", NODE, 1),
        ("kubelet-user", NODE + client_certificate("win-2"), 0),
    ],
)
def test_output_that_is_not_understood(fact: str, stdout: str, exit_code: int) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        load_windows_facts()[fact].parse(stdout, exit_code)


def read_user(text: str) -> tuple[int, str, str]:
    """Run the fact's script where each of its paths has a file with ``text``."""
    host = WindowsHost()
    for name in CLIENT_CERTIFICATES:
        write_file(host.machine.files, name, text)
    return host.run(" ".join(map(quote_argument, kubelet_user.command.argv)), cmd=False)


def test_the_private_key_is_not_printed() -> None:
    code, stdout, stderr = read_user(client_certificate("win1"))
    assert "PRIVATE" not in stdout + stderr
    assert stdout.count("BEGIN CERTIFICATE") == len(CLIENT_CERTIFICATES)
    assert kubelet_user.parse(stdout, code) == "system:node:win1"


def test_without_a_certificate() -> None:
    """As where the kubelet has a token of a cloud."""
    code, stdout, _ = read_user("")
    with pytest.raises(ValueError, match="no client certificates"):
        kubelet_user.parse(stdout, code)
