"""Faults on a host: nft, services, signals, SysRq, and their observation."""

from __future__ import annotations

import pytest

from chaos.lab.node.network import Direction, Family
from tests.kit.lab_host import Host

SERVER = {"ipv4": "10.89.0.2", "ipv6": "fd00:10:89::2"}
TABLE = """table inet nodefall {{
  chain in {{ type filter hook input priority -300; {incoming} }}
  chain out {{ type filter hook output priority -300; {outgoing} }}
}}
"""
BOTH = TABLE.format(
    incoming=f"ip saddr {SERVER['ipv4']} drop; ip6 saddr {SERVER['ipv6']} drop;",
    outgoing=f"ip daddr {SERVER['ipv4']} drop; ip6 daddr {SERVER['ipv6']} drop;",
)


def test_the_table_blocks_traffic_until_it_is_removed() -> None:
    host = Host()
    assert host.run("nft list tables") == (0, "", "")
    assert host.run("nft -f -", BOTH) == (0, "", "")
    assert host.machine.network.reachability() == {"ipv4": False, "ipv6": False}
    assert host.run("nft list tables") == (0, "table inet nodefall\n", "")
    assert "ip6 daddr fd00:10:89::2 drop" in host.run("nft list table inet nodefall")[1]
    assert host.run("nft delete table inet nodefall") == (0, "", "")
    assert host.machine.network.reachability() == {"ipv4": True, "ipv6": True}
    code, _, err = host.run("nft delete table inet nodefall")
    assert (code, err.splitlines()[0]) == (1, "Error: No such file or directory")
    assert host.run("nft destroy table inet nodefall") == (0, "", "")


def test_the_command_of_recording_12_cuts_ipv4_only() -> None:
    host = Host()
    text = (
        "table inet nodefall { chain in { type filter hook input priority -300; ip saddr 10.89.0.2 drop; }; "
        "chain out { type filter hook output priority -300; ip daddr 10.89.0.2 drop; }; }\n"
    )
    assert host.run("nft -f -", text) == (0, "", "")
    assert host.machine.network.reachability() == {"ipv4": False, "ipv6": True}


@pytest.mark.parametrize(
    ("incoming", "outgoing", "dropped"),
    [
        ("ip saddr 10.89.0.2 drop", "", {("ipv4", "in")}),
        ("", "ip6 daddr { fd00:10:89::2, fd00::1 } drop;", {("ipv6", "out")}),
        ("ip saddr 10.89.0.0/24 counter drop;", "", {("ipv4", "in")}),
        ("ip saddr 10.89.0.3 drop;", "ip daddr 192.0.2.1 drop;", set()),  # another host
        ("ip daddr 10.89.0.2 drop;", "tcp sport 6443 drop;", set()),  # the other end
        ("", "tcp dport { 443, 6443 } drop; udp dport 6443 drop;", {("ipv4", "out"), ("ipv6", "out")}),
        ("ip saddr 10.89.0.2 accept; drop;", "ip6 daddr fd00:10:89::2 accept", {("ipv6", "in")}),
        ('iifname "lo" accept; udp sport 6443 drop', "icmpv6 type { nd-neighbor-solicit } accept", set()),
    ],
)
def test_rules_by_address(incoming: str, outgoing: str, dropped: set[tuple[Family, Direction]]) -> None:
    host = Host()
    assert host.run("nft -f -", TABLE.format(incoming=incoming, outgoing=outgoing)) == (0, "", "")
    assert host.machine.network.drops() == dropped


@pytest.mark.parametrize(
    "script",
    [
        "",
        "flush ruleset",
        "table inet other { }",
        TABLE.format(incoming="ct state established drop", outgoing=""),
        TABLE.format(incoming="tcp dport 70000 drop", outgoing=""),
        TABLE.format(incoming="ip saddr fd00::1 drop", outgoing=""),
        TABLE.format(incoming="ip saddr 10.89.0.999 drop", outgoing=""),
        TABLE.format(incoming="ip saddr 10.89.0.2 queue", outgoing=""),
        "table inet nodefall { chain x { type nat hook input priority 0; } }",
        BOTH + "delete table inet other",
        "delete table inet nodefall\n" + BOTH,
    ],
)
def test_unsimulated_rules_are_rejected_without_effect(script: str) -> None:
    host = Host()
    code, _, err = host.run("nft -f -", script)
    assert code == 1
    assert err.startswith("Error: ")
    assert host.machine.network.drops() == set()


def test_a_script_may_destroy_and_create_the_table() -> None:
    host = Host()
    host.run("nft -f -", BOTH)
    assert host.run("nft -f -", "destroy table inet nodefall\n" + BOTH)[0] == 0
    assert host.run("nft delete table inet nodefall")[0] == 0
    assert host.machine.network.drops() == set()


def test_only_root_touches_the_firewall_the_kubelet_and_sysrq() -> None:
    host = Host()
    pid = host.machine.kubelet.pid
    for command in ("nft list tables", f"kill -STOP {pid}", "systemctl kill -s STOP kubelet", "systemctl stop kubelet"):
        assert host.run(command, root=False)[0] == 1
    assert host.run("echo b > /proc/sysrq-trigger", root=False)[0] == 2
    assert host.state() == ("on", True, True)
    assert not host.frozen()


def test_signals_stop_and_continue_the_kubelet() -> None:
    host = Host()
    pid = host.run("pidof kubelet")[1].strip()
    assert host.run("systemctl show -p MainPID --value kubelet")[1].strip() == pid
    assert host.run(f"kill -STOP {pid}") == (0, "", "")
    assert host.frozen()
    assert host.run("systemctl is-active kubelet") == (0, "active\n", "")
    assert host.run(f"kill -s CONT {pid}") == (0, "", "")
    assert not host.frozen()
    assert host.run("systemctl kill --signal=SIGSTOP kubelet")[0] == 0
    assert host.frozen()
    assert host.run("systemctl kill -s CONT kubelet.service")[0] == 0
    assert host.run(f"kill -9 {pid}")[0] == 0
    assert host.run("pidof kubelet") == (1, "", "")
    assert host.run("systemctl show -p MainPID --value kubelet")[1] == "0\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("kill -STOP 1", "No such process"),
        ("kill -WINCH 701", "does not simulate the signal WINCH"),
        ("kill", "not enough arguments"),
        ("systemctl kill -s STOP nginx", "not loaded"),
        ("systemctl kill -s STOP dbus", "simulates no process"),
        ("systemctl stop dbus", "does not simulate systemctl stop dbus.service"),
        ("systemctl stop systemd-logind", "does not simulate systemctl stop systemd-logind.service"),
        ("curl -k https://cp:6443/api", "simulates only"),
        ("curl -k https://nowhere:6443/readyz", "Could not resolve host: nowhere"),
        ("getent hosts cp", "simulates only"),
    ],
)
def test_refusals(command: str, message: str) -> None:
    code, _, err = Host().run(command)
    assert code != 0
    assert message in err


def test_services() -> None:
    host = Host()
    assert host.run("systemctl stop containerd; systemctl is-active containerd") == (3, "inactive\n", "")
    assert not host.machine.runtime.is_available
    assert host.run("systemctl restart containerd; systemctl is-active containerd") == (0, "active\n", "")
    assert host.run("systemctl restart dbus systemd-logind") == (0, "", "")
    assert [item["who"] for item in host.machine.logind.inhibitors()] == ["kubelet"]


@pytest.mark.parametrize(("key", "state"), [("b", "on"), ("c", "on"), ("o", "off"), ("s", "")])
def test_sysrq(key: str, state: str) -> None:
    host = Host()
    boot = host.machine.boot_id
    assert host.run(f"echo {key} > /proc/sysrq-trigger") == (0, "", "")
    assert host.state() == ((state, False, False) if state else ("on", True, True))
    host.cluster.sim.run_until(host.cluster.sim.now + 30.0)
    assert host.state()[1] == (key in "bcs")  # after a panic the machine reboots
    assert (host.machine.boot_id != boot) == (key in "bc")


def test_address_and_reachability_of_the_api_server() -> None:
    host = Host()
    assert "server: https://cp:6443\n" in host.run("cat /etc/kubernetes/kubelet.conf")[1]
    found = [line.split()[0] for line in host.run("getent ahosts cp")[1].splitlines() if "STREAM" in line]
    assert found == list(SERVER.values())
    assert host.run("getent ahostsv6 cp")[1].startswith("fd00:10:89::2")
    assert host.run("getent ahosts nowhere")[0] == 2
    assert host.run("curl -4 -k -s -m 2 https://cp:6443/readyz") == (0, "ok", "")
    assert host.run("curl -sk -o /dev/null https://[fd00:10:89::2]:6443/readyz") == (0, "", "")
    host.machine.partition(["ipv4"])
    assert host.run("curl -6 -k -s -m 2 https://cp:6443/readyz")[0] == 0
    assert host.run("curl -k -s -m 2 https://cp:6443/readyz")[0] == 0
