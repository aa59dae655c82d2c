"""The firewall's rules as the registry of a Windows node shows them."""

from __future__ import annotations

import pytest

from chaos.lab.windows.firewall import RULES_KEY
from tests.kit.win_host import WindowsHost

SEARCH = f"reg.exe query {RULES_KEY} /f Name=nodefall- /d"
ADD = "netsh.exe advfirewall firewall add rule name=nodefall-x dir={} action=block profile=any protocol=any enable=yes"


@pytest.fixture(scope="module")
def host() -> WindowsHost:
    return WindowsHost()


def test_rules_come_and_go_with_netsh(host: WindowsHost) -> None:
    assert host.run(SEARCH)[:2] == (1, "End of search: 0 match(es) found.\r\n")
    host.run(f"{ADD.format('in')} remoteip=10.0.0.1,fd00::1-fd00::9")
    host.run(ADD.format("out"))
    code, stdout, _ = host.run(SEARCH)
    assert code == 0
    assert "|Action=Block|Active=TRUE|Dir=In|RA4=10.0.0.1|RA6=fd00::1-fd00::9|Name=nodefall-x|" in stdout
    assert "|Action=Block|Active=TRUE|Dir=Out|Name=nodefall-x|" in stdout
    assert stdout.endswith("End of search: 2 match(es) found.\r\n")
    host.run("netsh.exe advfirewall firewall delete rule name=nodefall-x")
    assert host.run(SEARCH)[0] == 1


@pytest.mark.parametrize("words", ["/f x", "/f x /d /s", "/f"])
def test_a_search_that_is_not_simulated_is_an_error(host: WindowsHost, words: str) -> None:
    code, _, stderr = host.run(f"reg.exe query {RULES_KEY} {words}")
    assert code == 1
    assert "Invalid syntax" in stderr
