"""What firewall rules of a Windows machine cut, as a program on it and its clients see it.

The firewall's rules as the registry of a Windows node shows them.
"""

from __future__ import annotations

import pytest

from chaos.lab.windows.firewall import RULES_KEY
from tests.kit.win_host import WindowsHost, script_line

ADD = (
    "netsh.exe advfirewall firewall add rule name=nodefall-t dir={} action=block profile=any protocol=any enable=yes"
    " remoteip={}"
)
DELETE = "netsh.exe advfirewall firewall delete rule name=nodefall-t"


def _probe(host: WindowsHost, *addresses: str, port: int = 6443, seconds: int = 3) -> dict[str, bool]:
    """Whether a connection to each address could be made; by default to those of the API server."""
    found = addresses or tuple(host.machine.network.server_addresses.values())
    endpoints = [{"address": address, "family": "", "port": port} for address in found]
    code, out, err = host.script("probe-endpoints", endpoints=endpoints, seconds=seconds)
    assert (code, err) == (0, "")
    return {line.split()[0]: line.split()[1] == "True" for line in out.splitlines()}


def test_a_probe_reaches_the_api_server_over_both_families() -> None:
    host = WindowsHost()
    before = host.sim.now
    assert _probe(host) == dict.fromkeys(host.machine.network.server_addresses.values(), True)
    assert host.sim.now - before < 0.1


@pytest.mark.parametrize(
    ("ranges", "cut"),
    [
        ("10.89.0.2", {"ipv4"}),
        ("fd00:10:89::2", {"ipv6"}),
        ("10.89.0.2,fd00:10:89::/64", {"ipv4", "ipv6"}),
        ("10.89.0.2-10.89.0.9,fd00::1-fdff::1", {"ipv4", "ipv6"}),
        ("0.0.0.0-10.89.0.1,10.89.0.3-255.255.255.255", set()),
        ("any", {"ipv4", "ipv6"}),
    ],
)
def test_an_outbound_rule_cuts_new_and_existing_connections(ranges: str, cut: set[str]) -> None:
    host = WindowsHost()
    family = host.machine.kubelet.connection_family
    assert host.run(ADD.format("out", ranges)) == (0, "Ok.\r\n\r\n", "")
    before = host.sim.now
    reachable = {
        name: _probe(host, address)[address] for name, address in host.machine.network.server_addresses.items()
    }
    assert {name for name, ok in reachable.items() if not ok} == cut
    assert host.sim.now - before == pytest.approx(3.0 * len(cut), abs=0.1)
    link = host.machine.network.can_connect(family) if family else None
    assert link is (family not in cut)
    host.machine.firewall.turn(on=False)
    assert all(_probe(host).values())
    host.machine.firewall.turn(on=True)
    assert host.run(DELETE)[0] == 0
    assert all(_probe(host).values())
    assert host.run(DELETE)[0] == 1


def test_all_addresses_are_tried_at_once() -> None:
    host = WindowsHost()
    host.run(ADD.format("out", "any"))
    before = host.sim.now
    assert not any(_probe(host).values())
    assert host.sim.now - before == pytest.approx(3.0, abs=0.1)


def test_rules_outlive_a_boot() -> None:
    host = WindowsHost()
    host.run(ADD.format("out", "any"))
    host.machine.reset()
    host.wait(60.0)
    assert not any(_probe(host).values())


def test_a_connection_goes_through_when_the_rule_goes_in_the_meantime() -> None:
    """Windows sends SYNs after 0, 3 and 9 s."""
    host = WindowsHost()
    host.run(ADD.format("out", "any"))
    endpoint = {"address": host.machine.network.server_addresses["ipv4"], "family": "InterNetwork", "port": 6443}
    started = host.start(script_line("probe-endpoints", endpoints=[endpoint], seconds=12), cmd=False)
    host.wait(5.0)
    host.run(DELETE)
    host.wait(3.5)
    assert not started.out
    host.wait(1.0)
    assert "".join(started.out) == f"{endpoint['address']} True\r\n"


@pytest.mark.parametrize(
    ("address", "port", "seconds", "took"),
    [("10.89.0.2", 7, 5, 2.0), ("10.89.0.2", 7, 1, 1.0), ("192.0.2.1", 443, 9, 9.0), ("192.0.2.1", 443, 30, 21.0)],
    ids=["refused", "not yet refused", "silent", "given up"],
)
def test_what_does_not_answer(address: str, port: int, seconds: int, took: float) -> None:
    host = WindowsHost()
    before = host.sim.now
    assert _probe(host, address, port=port, seconds=seconds) == {address: False}
    assert host.sim.now - before == pytest.approx(took, abs=0.1)


@pytest.mark.parametrize(
    ("ranges", "peer", "is_cut"),
    [
        ("any", "10.0.0.1", True),
        ("0.0.0.0-9.255.255.255,10.0.0.2-255.255.255.255", "10.0.0.1", False),
        ("::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fd00::9", True),
    ],
)
def test_an_inbound_rule(ranges: str, peer: str, is_cut: bool) -> None:
    host = WindowsHost()
    assert host.machine.accepts(peer)
    host.run(ADD.format("in", ranges))
    assert host.machine.accepts(peer) is not is_cut
    assert all(_probe(host).values())  # the kubelet opens its connections itself
    host.machine.firewall.turn(on=False)
    assert host.machine.accepts(peer)


def test_an_inbound_rule_closes_the_kubelets_port() -> None:
    host = WindowsHost()
    host.run(ADD.format("in", "10.89.0.2,fd00:10:89::2"))
    assert not host.machine.is_kubelet_port_open
    host.run(DELETE)
    assert host.machine.is_kubelet_port_open


SEARCH = f"reg.exe query {RULES_KEY} /f Name=nodefall- /d"
ADD_RULE = (
    "netsh.exe advfirewall firewall add rule name=nodefall-x dir={} action=block profile=any protocol=any enable=yes"
)


@pytest.fixture(scope="module")
def host() -> WindowsHost:
    return WindowsHost()


def test_rules_come_and_go_with_netsh(host: WindowsHost) -> None:
    assert host.run(SEARCH)[:2] == (1, "End of search: 0 match(es) found.\r\n")
    host.run(f"{ADD_RULE.format('in')} remoteip=10.0.0.1,fd00::1-fd00::9")
    host.run(ADD_RULE.format("out"))
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
