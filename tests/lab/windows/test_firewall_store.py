"""The firewall's rules as the registry of a Windows node shows them, and the profiles that its networks have."""

from __future__ import annotations

import pytest

from tests.kit.win_host import WindowsHost

KEY = r"HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
SEARCH = f"reg.exe query {KEY} /f Name=nodefall- /d"
ADD = "netsh.exe advfirewall firewall add rule name=nodefall-x dir={} action=block remoteip={}"


@pytest.fixture(scope="module")
def host() -> WindowsHost:
    return WindowsHost()


def test_rules_come_and_go_with_netsh(host: WindowsHost) -> None:
    assert host.run(SEARCH)[:2] == (1, "End of search: 0 match(es) found.\r\n")
    host.run(ADD.format("in", "10.0.0.1,fd00::1-fd00::9"))
    host.run(ADD.format("out", "any"))
    code, stdout, _ = host.run(SEARCH)
    assert code == 0
    assert "|Action=Block|Active=TRUE|Dir=In|RA4=10.0.0.1|RA6=fd00::1-fd00::9|Name=nodefall-x|" in stdout
    assert "|Action=Block|Active=TRUE|Dir=Out|Name=nodefall-x|" in stdout
    assert stdout.endswith("End of search: 2 match(es) found.\r\n")
    host.run("netsh.exe advfirewall firewall delete rule name=nodefall-x")
    assert host.run(SEARCH)[0] == 1


def test_built_in_rules_are_there_with_their_ports(host: WindowsHost) -> None:
    code, stdout, _ = host.run(f"reg.exe query {KEY} /f winrm /d")
    assert code == 0
    assert "|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=5986|Name=WinRM HTTPS|" in stdout


@pytest.mark.parametrize("words", ["/f x", "/f x /d /s", "/f"])
def test_a_search_that_is_not_simulated_is_an_error(host: WindowsHost, words: str) -> None:
    code, _, stderr = host.run(f"reg.exe query {KEY} {words}")
    assert code == 1
    assert "Invalid syntax" in stderr


def test_a_search_in_a_key_that_does_not_exist(host: WindowsHost) -> None:
    code, stdout, stderr = host.run(r"reg.exe query HKLM\SOFTWARE\None /f x /d")
    assert (code, stdout) == (1, "")
    assert "unable to find" in stderr


def test_profiles_of_the_networks(host: WindowsHost) -> None:
    script = (
        "Get-NetConnectionProfile|%{$_.NetworkCategory};Get-NetFirewallProfile -PolicyStore ActiveStore|%{$_.Enabled}"
    )
    host.run("netsh.exe advfirewall set domainprofile state off")
    assert host.powershell(script)[:2] == (0, "Public\r\nFalse\r\nTrue\r\nTrue\r\n")
