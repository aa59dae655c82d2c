"""Facts about queueing disciplines, routes and pings: output of iproute2 6.1 and iputils."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.fact import HostFact, find_fact
from chaos.core.registry import discover

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)
NODES = "object/api/v1/nodes#/items"
DEFAULT = '{"kind":"fq_codel","handle":"0:","dev":"eth0","root":true,"refcnt":2,"options":{"limit":10240}}'
OURS = (
    '[{"kind":"prio","handle":"4e0f:","dev":"eth0","root":true,"refcnt":2,"options":{"bands":4}},'
    '{"kind":"netem","handle":"4e10:","dev":"eth0","parent":"4e0f:4","options":{"limit":1000},"packets":720,"drops":280},'
    '{"kind":"netem","handle":"4e10:","dev":"eth1","root":true,"options":{},"packets":5,"drops":5}]'
)
INBOUND = '[{"kind":"tbf","handle":"4e10:","dev":"nodefall0","root":true,"options":{},"packets":5,"drops":2}]'
LINKS = '\n[{"ifname":"lo","mtu":65536},{"ifname":"eth0","mtu":1500}]\n'
SHOWN = """qdisc prio 4e0f: root refcnt 2 bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
qdisc netem 4e10: parent 4e0f:4 limit 1000 delay 2ms  1ms
filter protocol ip pref 1 flower chain 0 handle 0x1 classid 4e0f:4
"""
NORMAL = "qdisc netem 4e11: parent 4e0f:3 limit 1000 delay 2ms  1ms\n"
TBF = "qdisc tbf 4e12: parent 4e0f:2 rate 1Mbit burst 3000b lat 376ms\n"
PASS = "\taction order 1: gact action pass\n"
REDIRECT = "\taction order 1: mirred (Egress Redirect to device nodefall0) stolen\n"
ROUTES = (
    '[{"type":"local","dst":"10.0.0.9","dev":"lo","prefsrc":"10.0.0.9","flags":[],"uid":0,"cache":["local"]}]\n'
    '[{"dst":"10.0.0.1","gateway":"10.0.0.254","dev":"eth0","prefsrc":"10.0.0.9","flags":[],"uid":0,"cache":[]}]\n'
)
PINGS = """peer control-plane 10.0.0.1
PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.

--- 10.0.0.1 ping statistics ---
10 packets transmitted, 7 received, 30% packet loss, time 1807ms
rtt min/avg/max/mdev = 183.643/204.293/313.099/16.637 ms, pipe 2
peer nodes 10.0.0.2
PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.

--- 10.0.0.2 ping statistics ---
10 packets transmitted, 0 received, 100% packet loss, time 1807ms

"""


def test_qdiscs_are_all_that_tc_prints_but_references_and_options_of_the_default() -> None:
    fact = find_fact(FACTS, "qdiscs")
    row = {"kind": "fq_codel", "handle": "0:", "root": True}
    given = DEFAULT.replace("0:", "8001:").replace("10240", "100")
    assert fact.parse(f"[{given}]", 0) == {"eth0": [row | {"handle": "8001:", "options": {"limit": 100}}]}
    assert fact.parse(f"[{DEFAULT}]", 0) == {"eth0": [row]}
    one = find_fact(FACTS, "qdiscs?interface=eth0")
    assert str(one.command_for({})) == "tc -j qdisc show dev eth0"
    assert one.parse(f"[{DEFAULT}]".replace('"dev":"eth0",', ""), 0) == {"eth0": [row]}
    with pytest.raises(ValueError, match="interface"):
        find_fact(FACTS, "qdiscs?interface=eth0%3Breboot")


def test_packets_are_counted_where_the_root_is_nodefalls() -> None:
    assert FACTS["netem"].parse(OURS + LINKS, 0) == {"interface": "eth0", "passed": 720, "dropped": 280}
    assert FACTS["netem"].parse(f"[{DEFAULT}]{LINKS}", 0) is False
    assert FACTS["netem"].parse(LINKS, 0) is False


@pytest.mark.parametrize(
    ("qdiscs", "value"),
    [
        (INBOUND, {"interface": "nodefall0", "passed": 5, "dropped": 2}),
        (OURS[:-1] + "," + INBOUND[1:], {"interface": "eth0", "passed": 725, "dropped": 282}),
        (f"[{DEFAULT}]", {"interface": "nodefall0", "passed": 0, "dropped": 0}),
    ],
)
def test_the_device_for_inbound_packets_is_found(qdiscs: str, value: Any) -> None:
    assert FACTS["netem"].parse(f'{qdiscs}\n[{{"ifname":"lo"}},{{"ifname":"nodefall0","mtu":1500}}]\n', 0) == value


@pytest.mark.parametrize(
    ("stdout", "exit_code", "value"),
    [
        (SHOWN, 1, ["netem"]),
        (SHOWN + REDIRECT, 1, ["netem"]),
        (SHOWN + NORMAL + TBF + PASS + REDIRECT, 0, ["netem", "normal", "tbf", "ingress"]),
        (SHOWN + TBF, 1, ["netem", "tbf"]),
    ],
)
def test_support(stdout: str, exit_code: int, value: list[str]) -> None:
    assert FACTS["netem-support"].parse(stdout, exit_code) == value


@pytest.mark.parametrize(
    ("lost", "module"), [("qdisc prio", "sch_prio"), ("classid", "cls_flower"), ("qdisc netem", "sch_netem")]
)
def test_the_module_that_is_lacking_is_named(lost: str, module: str) -> None:
    with pytest.raises(ValueError, match=f"the kernel has no module {module}"):
        FACTS["netem-support"].parse(SHOWN.replace(lost, ""), 1)


def test_routes_leave_out_own_addresses() -> None:
    fact = FACTS["peer-routes"]
    node = {
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}, {"type": "Hostname", "address": "n"}]}
    }
    known: dict[str, Any] = {"server-addresses": ["10.0.0.1"], "api-peers": [["10.0.0.1", 6443]], NODES: [node]}
    known["node-name"] = "own"
    assert fact.needs == ("server-addresses", "api-peers", NODES, "node-name")
    assert fact.command_for(known).stdin == "route get 10.0.0.1\nroute get 10.0.0.9\n"
    assert fact.parse(ROUTES, 1) == {"10.0.0.1": "eth0"}


def test_pings_go_to_one_api_server_and_one_other_node() -> None:
    fact = find_fact(FACTS, "round-trips")
    nodes = [{"status": {"addresses": [{"type": "InternalIP", "address": a}]}} for a in ("10.0.0.9", "10.0.0.2")]
    known: dict[str, Any] = {"server-addresses": ["10.0.0.1"], "api-peers": [], NODES: nodes, "node-name": "own"}
    script = str(fact.command_for(known | {"peer-routes": {"10.0.0.1": "eth0", "10.0.0.2": "eth0"}}))
    assert "peer control-plane 10.0.0.1; ping -n -q -c 10 -i 0.2 -W 2 10.0.0.1" in script
    assert "peer nodes 10.0.0.2; ping" in script
    assert "10.0.0.9" not in script
    with pytest.raises(ValueError, match="no route"):
        fact.command_for(known | {"peer-routes": {}})
    assert fact.parse(PINGS, 1) == {
        "control-plane": {
            "address": "10.0.0.1",
            "sent": 10,
            "received": 7,
            "duplicates": 0,
            "mean": 0.204293,
            "longest": 0.313099,
        },
        "nodes": {"address": "10.0.0.2", "sent": 10, "received": 0, "duplicates": 0, "mean": -1.0, "longest": -1.0},
    }


def test_no_address_of_the_own_node_is_pinged() -> None:
    """Not even an external one, which is none of the host's own and for which a NAT may answer."""
    addresses = {"own": ["10.0.0.9", "203.0.113.1"], "other": ["10.0.0.2", "203.0.113.2"]}
    nodes = [
        {"metadata": {"name": name}, "status": {"addresses": [{"type": "ExternalIP", "address": a} for a in found]}}
        for name, found in addresses.items()
    ]
    known: dict[str, Any] = {"server-addresses": [], "api-peers": [], NODES: nodes, "node-name": "own"}
    reached = {"peer-routes": dict.fromkeys(["203.0.113.1", "203.0.113.2"], "eth0")}
    script = str(find_fact(FACTS, "round-trips").command_for(known | reached))
    assert "peer nodes 203.0.113.2; ping" in script
    assert "203.0.113.1;" not in script


def test_duplicates_are_counted() -> None:
    text = "peer nodes 10.0.0.2\n10 packets transmitted, 9 received, +6 duplicates, 10% packet loss, time 1833ms\n"
    found = FACTS["round-trips"].parse(text, 1)["nodes"]
    assert (found["received"], found["duplicates"], found["mean"]) == (9, 6, -1.0)


def test_pings_go_to_networks_and_families() -> None:
    node = {"status": {"addresses": [{"type": "InternalIP", "address": "10.7.0.2"}]}}
    known: dict[str, Any] = {"server-addresses": ["10.0.0.1", "fd00::1"], "api-peers": [], NODES: [node]}
    known["node-name"] = "own"
    routes = find_fact(FACTS, "peer-routes?networks=10.7.0.0%2F16%2C192.0.2.7")
    assert routes.command_for(known).stdin == "route get 10.7.0.1\nroute get 10.7.0.2\nroute get 192.0.2.7\n"
    fact = find_fact(FACTS, "round-trips?networks=10.7.0.0%2F16%2C192.0.2.7")
    assert fact.needs[-1] == "peer-routes?networks=10.7.0.0%2F16%2C192.0.2.7"
    assert FACTS["round-trips"].needs[-1] == "peer-routes"
    reached = {fact.needs[-1]: dict.fromkeys(["10.7.0.1", "10.7.0.2", "192.0.2.7"], "eth0")}
    assert "peer cidr 10.7.0.2; ping" in str(fact.command_for(known | reached))
    six = find_fact(FACTS, "ping-bursts?family=ipv6")
    script = str(six.command_for(known | {"peer-routes": {"10.0.0.1": "eth0", "fd00::1": "eth0"}}))
    assert "peer control-plane fd00::1; ping -n -q -l 25 -c 25 -s 1400 -S 200000 -W 10 fd00::1" in script
    for wrong in ("networks=10.7.0.1%3Breboot", "family=ipv5", "networks=fe80%3A%3A1%25eth0"):
        with pytest.raises(ValueError, match="round-trips"):
            find_fact(FACTS, f"round-trips?{wrong}")


@pytest.mark.parametrize(("stdout", "exit_code", "value"), [("tried\nloaded\n", 0, True), ("tried\n", 1, False)])
def test_early_reject(stdout: str, exit_code: int, value: bool) -> None:
    assert FACTS["nft-early-reject"].parse(stdout, exit_code) is value


def test_kinds_of_links() -> None:
    text = '[{"ifname":"lo"},{"ifname":"eth0","linkinfo":{"info_kind":"veth"}},{"ifname":"eth1","parentbus":"virtio"}]'
    assert FACTS["link-mtus"].parse(LINKS, 0) == {"lo": 65536, "eth0": 1500}
    assert FACTS["link-kinds"].parse(text, 0) == {"lo": "", "eth0": "veth", "eth1": ""}


_BLACK_HOLE = '[{"type":"blackhole","dst":"10.244.1.64/26","protocol":"80","flags":[]}]\n'


@pytest.mark.parametrize(
    ("stdout", "value"),
    [
        ("[]\n[]\n", []),
        ("[]\n", []),  # a kernel without IPv6
        (
            _BLACK_HOLE
            + '[{"type":"blackhole","dst":"fd00:1::/122","dev":"lo","metric":1024,"flags":[],"pref":"medium"}]\n',
            ["10.244.1.64/26", "fd00:1::/122"],
        ),
        (
            '[{"type":"blackhole","dst":"default","flags":[]},{"type":"blackhole","dst":"10.1.2.3","flags":[]}]\n[]\n',
            ["10.1.2.3"],
        ),
    ],
)
def test_black_holes(stdout: str, value: list[str]) -> None:
    """As iproute2 6.1 prints routes that were added as Calico's (proto 80)."""
    assert FACTS["black-hole-routes"].parse(stdout, 0) == value


@pytest.mark.parametrize(
    ("name", "stdout", "exit_code"),
    [
        ("nft-early-reject", "", 1),
        ("black-hole-routes", "", 127),
        ("black-hole-routes", "x", 0),
        ("netem", "", 1),
        ("netem", '{"kind": "prio"}', 0),
        ("netem", "a\nb\nc", 0),
        ("netem-support", "", 1),
        ("netem-support", SHOWN.replace("classid", ""), 1),
        ("link-kinds", "", 1),
        ("link-mtus", "", 1),
        ("link-mtus", "eth0", 0),
        ("peer-routes", "", 1),
        ("round-trips", "peer nodes 10.0.0.2\nsh: 1: ping: not found\n", 127),
        ("round-trips", "", 0),
    ],
)
def test_what_is_not_understood_is_unknown(name: str, stdout: str, exit_code: int) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        FACTS[name].parse(stdout, exit_code)


def zoned(name: str, zone: str, *addresses: str) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    found = [{"type": "InternalIP", "address": address} for address in addresses]
    return {"metadata": {"name": name, "labels": labels}, "status": {"addresses": found}}


BY_ZONE = [
    zoned("nowhere", "", "10.0.0.5"),
    zoned("own", "a", "10.0.0.1", "192.0.2.1"),
    zoned("far", "b", "192.0.2.1", "10.0.0.3", "fd00::3"),
    zoned("near", "a", "192.0.2.1", "10.0.0.2"),
]
OWN = "labels/topology.kubernetes.io/zone"


def test_pings_go_to_another_zone_and_to_the_own_one() -> None:
    """Not to a node in no zone, nor to what the own node shares with others."""
    own = {"topology.kubernetes.io/zone": "a"}
    known: dict[str, Any] = {"server-addresses": ["10.0.0.9"], "api-peers": [], NODES: BY_ZONE, OWN: own}
    known["node-name"] = "own"
    routes = find_fact(FACTS, "peer-routes?by=zone")
    assert routes.needs == ("server-addresses", "api-peers", NODES, OWN, "node-name")
    wanted = ["10.0.0.2", "10.0.0.3", "10.0.0.9", "fd00::3"]  # an API server may be in another zone
    assert routes.command_for(known).stdin == "".join(f"route get {address}\n" for address in wanted)
    fact = find_fact(FACTS, "round-trips?by=zone")
    assert fact.needs == (*routes.needs, "peer-routes?by=zone")
    reached = {"peer-routes?by=zone": dict.fromkeys(wanted, "eth0")}
    script = str(fact.command_for(known | reached))
    assert [part.split(";")[0] for part in script.split("peer ")[1:]] == ["other-zones 10.0.0.3", "own-zone 10.0.0.2"]
    six = str(find_fact(FACTS, "ping-bursts?by=zone&family=ipv6").command_for(known | reached))
    assert [part.split(";")[0] for part in six.split("peer ")[1:]] == ["other-zones fd00::3"]


@pytest.mark.parametrize("hostname", ["localhost", None])
def test_the_own_node_is_known_by_its_name(hostname: str | None) -> None:
    """Hosts may all have one name, or the label may be missing."""
    nodes = deepcopy(BY_ZONE)
    for node in nodes:
        node["metadata"]["labels"] |= {"kubernetes.io/hostname": hostname} if hostname else {}
    known: dict[str, Any] = {"server-addresses": [], "api-peers": [], NODES: nodes, "node-name": "own"}
    known[OWN] = {"topology.kubernetes.io/zone": "a"}
    lines = find_fact(FACTS, "peer-routes?by=zone").command_for(known).stdin.splitlines()
    assert lines == [f"route get {address}" for address in ("10.0.0.2", "10.0.0.3", "fd00::3")]


@pytest.mark.parametrize("labels", [{}, None, {"topology.kubernetes.io/zone": ""}])
def test_a_node_without_a_zone_pings_none(labels: dict[str, str] | None) -> None:
    known: dict[str, Any] = {"server-addresses": [], "api-peers": [], NODES: BY_ZONE, OWN: labels}
    known["node-name"] = "own"
    for name, more in (("peer-routes", {}), ("mtu-pings?size=1400", {"peer-routes?by=zone": {"10.0.0.3": "eth0"}})):
        reference = f"{name}{'&' if '?' in name else '?'}by=zone"
        with pytest.raises(ValueError, match=r"no label topology\.kubernetes\.io/zone"):
            find_fact(FACTS, reference).command_for(known | more)


def test_networks_and_zones_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="networks and by exclude each other"):
        find_fact(FACTS, "round-trips?by=zone&networks=10.0.0.0%2F8")
    with pytest.raises(ValueError, match="by"):
        find_fact(FACTS, "round-trips?by=rack")
