"""Partition: the rules, which peers they block, refusals, failsafe timer and undo."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.faults.actions._packetfilter import BlockRule, addresses_within, merge_networks, ruleset
from tests.kit.actionkit import ACTIONS, describe, prepare


def node(name: str, addresses: list[str], pods: list[str], *, plane: bool = False) -> dict[str, Any]:
    labels = {"node-role.kubernetes.io/control-plane": ""} if plane else {}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDRs": pods},
        "status": {"addresses": [{"type": "InternalIP", "address": a} for a in addresses]},
    }


NODES = {
    "items": [
        node("cp", ["10.0.0.1", "fd00::1"], ["10.244.0.0/24"], plane=True),
        node("n1", ["10.0.0.2", "fd00::2"], ["10.244.1.0/24", "fd01:1::/64"]),
        node("n2", ["10.0.0.3", "fd00::3"], ["10.244.2.0/24"]),
    ]
}
FACTS: dict[str, Any] = {
    "nft": "1.0.6",
    "nft-rules": False,
    "ssh-peer": {"address": "10.9.9.9", "port": 22},
    "server-addresses": ["10.0.0.100"],
    "api-peers": [["10.0.0.1", 6443]],
    "api-reachable": {"ipv4": True, "ipv6": True},
    "black-hole-routes": [],
}
READY = Target("n1", facts=FACTS, objects={"/api/v1/nodes": NODES}, tag="run-cut", max_duration=600.0)


def rules(given: dict[str, Any], target: Target = READY) -> str:
    return str(prepare("partition", given, target).rules)


def test_the_control_plane_is_every_known_address_of_it() -> None:
    text = rules({})
    assert "ip saddr { 10.0.0.1, 10.0.0.100 } counter drop" in text
    assert "ip6 daddr { fd00::1 } counter drop" in text
    assert text.count("hook") == 3
    assert "ip saddr 10.9.9.9 tcp dport 22 accept" in text
    assert "10.0.0.3" not in text


def test_other_nodes_and_their_pods() -> None:
    text = rules({"from": "nodes", "direction": "in"})
    assert "ip saddr { 10.0.0.1, 10.0.0.3, 10.244.0.0/24, 10.244.2.0/24 } counter drop" in text
    assert "hook output" not in text
    assert "10.0.0.2" not in text


@pytest.mark.parametrize("source", ["nodes", "control-plane"])
def test_an_address_that_others_share_with_this_node_is_no_peer(source: str) -> None:
    """As an external address behind which all nodes are, or a virtual one."""
    shared = [node("cp", ["10.0.0.1", "10.0.0.7"], [], plane=True), node("n1", ["10.0.0.2", "10.0.0.7"], [])]
    text = rules({"from": source}, replace(READY, objects={"/api/v1/nodes": {"items": shared}}))
    assert "10.0.0.1" in text
    assert "10.0.0.7" not in text


def calico(*blocks: str) -> Target:
    return replace(READY, facts=FACTS | {"black-hole-routes": list(blocks)})


@pytest.mark.parametrize("action", ["partition", "mtu"])
def test_blocks_of_this_node_in_podcidrs_of_others(action: str) -> None:
    """Calico ignores podCIDRs: 10.244.2.64/26 of n2 was given to pods of this node, and 10.244.1.0/24 may be n2's."""
    text = str(prepare(action, {"from": "nodes"}, calico("10.244.2.64/26")).rules)
    others = "10.244.0.0/24, 10.244.2.0/26, 10.244.2.128/25"
    assert f"ip saddr {{ 10.0.0.1, 10.0.0.3, {others} }}" in text
    assert "ip saddr 10.244.2.64/26 accept" in text
    assert "ip saddr 10.244.2.64/26 ip daddr 10.244.2.64/26 accept" in text
    assert "10.244.1.0/24" not in text


@pytest.mark.parametrize(
    ("blocks", "own"),
    [
        ([], ["10.244.1.0/24"]),
        (["192.168.7.64/26"], ["10.244.1.0/24", "192.168.7.64/26"]),  # of a pool that no podCIDR is in
        (["10.0.0.0/8"], ["10.244.1.0/24"]),  # no block of Calico's
        (["10.244.1.0/24"], ["10.244.1.0/24"]),
        (["10.244.2.0/24", "10.244.0.0/20"], ["10.244.0.0/20"]),
    ],
)
def test_own_networks(blocks: list[str], own: list[str]) -> None:
    text = rules({"from": "cidr", "cidrs": ["172.16.0.0/12"]}, calico(*blocks))
    chain = text.split("chain ")[1]
    assert [line.split()[2] for line in chain.splitlines() if line.startswith("\t\tip saddr 1") and "accept" in line][
        1:
    ] == own


def test_a_block_that_has_all_of_a_peer_leaves_none() -> None:
    with pytest.raises(Unsupported, match="no address of another node"):
        rules({"from": "nodes"}, calico("10.0.0.0/20", "10.244.0.0/20", "fd00::/116"))


def test_a_state_of_0_1_0_is_undone() -> None:
    """It had no peer; its undo proves the same."""
    action = ACTIONS["partition"]
    former = {"rules": "table inet nodefall {}", "reachable": {"ipv4": True}, "tag": "run-cut", "seconds": 60.0}
    state = action.decode_state(former)
    assert [check.fact for check in action.program(state).preconditions] == ["nft-rules"]
    assert [str(check) for check in action.program(state).undo.proof] == [
        "nft-rules is False",
        "api-reachable is {'ipv4': True}",
        "the node is Ready",
    ]
    timer = action.program(state).failsafe
    assert timer is not None
    assert timer.seconds == 60.0
    assert action.decode_state(former | {"reachable": None}).reachable is None


@pytest.mark.parametrize(
    "with_", [{}, {"from": "cidr", "cidrs": ["10.0.0.0/8", "fd00::/8"]}, {"from": "port", "ports": [10250]}]
)
def test_a_node_is_never_blocked_from_itself_nor_from_nodefall(with_: dict[str, Any]) -> None:
    """A blocked network may contain its own address, and nodefall's; neighbour discovery is needed too."""
    for chain in rules(with_).split("chain ")[1:3]:
        first = chain.split("\n")[2:]
        drop = next(number for number, rule in enumerate(first) if "drop" in rule)
        exempt = " ".join(first[:drop])
        for rule in ('"lo" accept', "nd-neighbor-solicit", "10.9.9.9 tcp", "10.244.1.0/24 accept"):
            assert rule in exempt


def test_existing_rules_prevent_the_fault() -> None:
    assert describe("partition", {}, READY).preconditions == [
        "nft-rules is False",
        "ssh-peer is {'address': '10.9.9.9', 'port': 22}",  # the rules leave it out
    ]


def test_everything_but_us_exempts_loopback_neighbours_and_own_pods() -> None:
    text = rules({"from": "everything-but-us"})
    for rule in ('iifname "lo" accept', "nd-neighbor-solicit", "ip daddr 10.244.1.0/24 accept", "tcp sport 22 accept"):
        assert rule in text
    assert "\t\tcounter drop\n" in text
    into, out = (chain.split("counter drop")[0] for chain in text.split("chain ")[1:3])
    for needed in ("icmpv6 type packet-too-big accept", "icmp code frag-needed accept"):
        assert needed in into, "the connection hangs where the path's MTU is smaller"
        assert needed not in out


@pytest.mark.parametrize(
    ("with_", "there", "absent"),
    [
        ({"from": "cidr", "cidrs": ["10.0.0.0/8", "10.1.0.0/16"]}, "{ 10.0.0.0/8 }", "10.1.0.0"),
        (
            {"from": "port", "ports": [443, 10250], "traffic": "host"},
            "udp dport { 443, 10250 } counter drop",
            "forward",
        ),
        ({"traffic": "pods"}, "hook forward", "hook input"),
        ({"traffic": "host", "direction": "out"}, "hook output", "hook input"),
    ],
)
def test_rules(with_: dict[str, Any], there: str, absent: str) -> None:
    text = rules(with_)
    assert there in text
    assert absent not in text


def test_failsafe_and_undo_delete_only_the_table_of_nodefall() -> None:
    described = describe("partition", {"duration": "100s"}, READY)
    assert described.inject == ["nft -f -"]
    assert described.failsafe == "nodefall-run-cut after 100s: nft delete table inet nodefall"
    assert described.undo == ["nft delete table inet nodefall unless nft-rules is False"]
    assert described.proof == [
        "nft-rules is False",
        "api-reachable is {'ipv4': True, 'ipv6': True}",
        "the node is Ready",
    ]
    assert described.disarm == "nodefall-run-cut"
    assert describe("partition", {}, READY).failsafe.startswith("nodefall-run-cut after 600s")
    assert "api-reachable" not in str(describe("partition", {"from": "nodes"}, READY).proof)


def without(fact: str) -> Target:
    facts = {name: value for name, value in FACTS.items() if name != fact}
    return replace(READY, facts=facts, unknown={fact: "there is no such program"})


@pytest.mark.parametrize("fact", sorted(FACTS))
def test_a_host_without_a_needed_fact_is_refused_by_its_name(fact: str) -> None:
    with pytest.raises(Unsupported, match=f"the fact {fact} is not known: there is no such program"):
        rules({}, without(fact))


REFUSED = [
    (replace(READY, facts=FACTS | {"nft-rules": {"packets": 3}}), {}, "packet filter rules of nodefall"),
    (READY, {"families": ["ipv4"]}, "one address family"),
    (replace(READY, facts=FACTS | {"api-reachable": {"ipv4": False}}), {}, "does not reach the API server now"),
    (replace(READY, node="cp"), {}, "runs the API server that it uses"),
    (replace(READY, objects={}), {"from": "nodes"}, "no address of another node"),
    (
        replace(READY, node="cp", facts=FACTS | {"server-addresses": [], "api-peers": [["127.0.0.1", 6443]]}),
        {},
        "no address of",
    ),
]


@pytest.mark.parametrize(("target", "with_", "why"), REFUSED)
def test_refusals(target: Target, with_: dict[str, Any], why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        rules(with_, target)


EVIL = "fe80::1%x accept; } }; flush ruleset #"


@pytest.mark.parametrize(
    "text", [EVIL, f"{EVIL}/64", "10.0.0.9; flush ruleset", "x\ny", '10.0.0.9/8 include "/etc/shadow"']
)
@pytest.mark.parametrize("where", ["address", "pods", "own pods"])
def test_an_invalid_address_of_a_node_never_becomes_a_rule(text: str, where: str) -> None:
    """A kubelet writes its own addresses; the rules are loaded as root on another node."""
    evil = node("n2", [text if where == "address" else "10.0.0.3"], [text] if where == "pods" else [])
    own = node("n1", ["10.0.0.2"], [text] if where == "own pods" else [])
    target = replace(READY, objects={"/api/v1/nodes": {"items": [NODES["items"][0], own, evil]}})
    with pytest.raises(Unsupported, match="no rules can be made"):
        rules({"from": "nodes"}, target)


@pytest.mark.parametrize(
    "with_",
    [
        {"from": "cidr", "cidrs": [EVIL]},
        {"from": "cidr"},
        {"cidrs": ["10.0.0.0/8"]},
        {"from": "cidr", "cidrs": ["x"]},
        {"from": "port"},
        {"from": "port", "ports": [0]},
        {"from": "port", "ports": [70000]},
        {"from": "mars"},
    ],
)
def test_bad_parameters(with_: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ACTIONS["partition"].params.model_validate(with_)


@given(st.lists(st.ip_addresses().map(str) | st.sampled_from(["10.0.0.0/8", "fd00::/8", "10.1.2.0/24"]), min_size=1))
def test_sets_never_overlap_and_lose_nothing(addresses: list[str]) -> None:
    merged = [ip_network(text) for text in merge_networks(addresses)]
    for index, one in enumerate(merged):
        assert not any(one.version == other.version and one.overlaps(other) for other in merged[index + 1 :])
    for text in addresses:
        network = ip_network(text, strict=False)
        assert any(network.version == k.version and network.subnet_of(k) for k in merged)  # type: ignore[arg-type]
    assert ruleset(BlockRule(peers=merge_networks(addresses))).count("{") == ruleset(
        BlockRule(peers=merge_networks(addresses))
    ).count("}")


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        ([], []),
        (["10.0.0.0/8"], ["10.0.0.1", "10.0.1.1"]),
        (["10.0.0.1"], ["10.0.0.1"]),
        (["10.0.1.0/24", "fd00::/64"], ["10.0.1.1", "fd00::1"]),
        (["0.0.0.0/0"], ["10.0.0.1", "10.0.1.1", "0.0.0.1"]),
        (["::/0"], ["fd00::1", "fd00:0:0:1::1", "::1"]),  # "::1" has the bits of "0.0.0.1"
        (["::/96"], ["::1"]),
        (["10.0.0.7/24"], ["10.0.0.1"]),
    ],
)
def test_addresses_within_networks(networks: list[str], expected: list[str]) -> None:
    addresses = ["10.0.0.1", "10.0.1.1", "0.0.0.1", "fd00::1", "fd00:0:0:1::1", "::1"]
    assert addresses_within(addresses, networks) == expected


_ADDRESSES = st.ip_addresses(network="10.0.0.0/28") | st.ip_addresses(network="fd00::/124")
_NETWORKS = st.tuples(_ADDRESSES, st.integers(0, 128)).map(
    lambda made: f"{made[0]}/{min(made[1], made[0].max_prefixlen)}"
)


@given(st.lists(_ADDRESSES), st.lists(_NETWORKS))
def test_addresses_within_networks_are_those_that_python_finds_in_one(
    addresses: list[IPv4Address | IPv6Address], networks: list[str]
) -> None:
    found = [
        str(address) for address in addresses if any(address in ip_network(text, strict=False) for text in networks)
    ]
    assert addresses_within(map(str, addresses), networks) == found
    with pytest.raises(ValueError, match="zone"):
        addresses_within(map(str, addresses), [*networks, "fe80::1%eth0"])
