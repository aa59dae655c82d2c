"""Latency, loss, corruption, duplicates, bandwidth: the batch for tc, refusals, failsafe timer and undo."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from tests.kit.actionkit import ACTIONS, describe, prepare

CLSACT = {"kind": "clsact", "handle": "ffff:", "parent": "ffff:fff1"}
DEFAULT = {"kind": "fq_codel", "handle": "0:", "root": True}


def node(name: str, *addresses: str, plane: bool = False) -> dict[str, Any]:
    labels = {"node-role.kubernetes.io/control-plane": ""} if plane else {}
    found = [{"type": "InternalIP", "address": address} for address in addresses]
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"addresses": found}}


NODES = [node("cp", "10.0.0.1", "fd00::1", plane=True), node("n1", "10.0.0.2"), node("n2", "10.0.0.3")]
FACTS: dict[str, Any] = {
    "netem-support": ["netem", "normal", "tbf", "ingress"],
    "shared-kernel": False,
    "link-kinds": {"eth0": "", "eth1": ""},
    "netem": False,
    "qdiscs": {"eth0": [DEFAULT], "eth1": [DEFAULT | {"kind": "htb", "handle": "1:"}]},
    "peer-routes": {"10.0.0.1": "eth0", "fd00::1": "eth0", "10.0.0.3": "eth0"},
    "server-addresses": ["10.0.0.1"],
    "api-peers": [["10.0.0.1", 6443]],
    "ssh-peer": {"address": "10.9.9.9", "port": 22},
    "sysctl?key=net.core.default_qdisc": "fq_codel",
}
KIND = "sysctl?key=net.core.default_qdisc is fq_codel"
RENEW = (
    """sh -c 'tc qdisc add dev "$1" root handle 4e0f: pfifo && tc qdisc del dev "$1" root handle 4e0f:' nodefall eth0"""
)
MULTIQUEUE = [{"kind": "mq", "handle": "0:", "root": True}, DEFAULT | {"parent": ":1"}, DEFAULT | {"parent": ":2"}]
READY = Target("n1", facts=FACTS, objects={"/api/v1/nodes": {"items": NODES}}, tag="run-slow", max_duration=600.0)
FEW = replace(READY, objects={"/api/v1/nodes": {"items": NODES[1:]}})
LOSS = {"percent": 30}


def lines(action: str, given: dict[str, Any], target: Target = READY) -> list[str]:
    return str(prepare(action, given, target).batch).splitlines()


def test_filters_come_last_and_the_own_connection_first_of_them() -> None:
    """A batch that is cut off before the filters has no effect."""
    head = "filter add dev eth0 parent 4e0f: protocol"
    assert lines("latency", {"delay": "200ms", "jitter": "20ms"}) == [
        "qdisc add dev eth0 root handle 4e0f: prio bands 4",
        "qdisc add dev eth0 parent 4e0f:4 handle 4e10: netem limit 100000 delay 200ms 20ms",
        f"{head} ip pref 1 flower ip_proto tcp dst_ip 10.9.9.9/32 src_port 22 classid 4e0f:1",
        f"{head} ip pref 2 flower dst_ip 10.0.0.1/32 classid 4e0f:4",
        f"{head} ipv6 pref 3 flower dst_ip fd00::1/128 classid 4e0f:4",
    ]


@pytest.mark.parametrize(
    ("action", "given", "effect"),
    [
        ("latency", {"delay": "1s"}, "delay 1000ms"),
        ("latency", {"delay": "50ms", "jitter": "5ms", "distribution": "uniform"}, "delay 50ms 5ms"),
        ("latency", {"delay": "50ms", "jitter": "5ms", "distribution": "normal"}, "delay 50ms 5ms distribution normal"),
        ("packet-loss", {"percent": 2.5}, "loss 2.5%"),
        ("packet-corrupt", {"percent": 5}, "corrupt 5%"),
        ("packet-duplicate", {"percent": 100}, "duplicate 100%"),
    ],
)
def test_effects(action: str, given: dict[str, Any], effect: str) -> None:
    assert lines(action, given)[1].endswith(f"netem limit 100000 {effect}")


@pytest.mark.parametrize(("rate", "limit"), [("64kbit", 50_000), ("1.5mbit", 75_000), ("100mbit", 5_000_000)])
def test_a_rate_has_a_queue_of_its_own_size(rate: str, limit: int) -> None:
    bits = {"64kbit": 64_000, "1.5mbit": 1_500_000, "100mbit": 100_000_000}[rate]
    found = lines("bandwidth", {"rate": rate}, changed(link_mtus={"eth0": 1500}))
    assert found[1].endswith(f"handle 4e10: tbf rate {bits}bit burst 6000 limit {limit}")


@pytest.mark.parametrize(("mtu", "burst"), [(1500, 6000), (5900, 6000), (9001, 9101), (9216, 9316)])
def test_the_largest_packet_passes_at_once(mtu: int, burst: int) -> None:
    """Tbf drops what is larger than the burst."""
    found = lines("bandwidth", {"rate": "1mbit"}, changed(link_mtus={"eth0": mtu, "lo": 65536}))
    assert f" burst {burst} " in found[1]


def test_packets_that_spoil_the_proof_are_refused() -> None:
    with pytest.raises(Unsupported, match="eth0 of n1 has packets of 65520 bytes"):
        prepare("bandwidth", {"rate": "1mbit"}, changed(link_mtus={"eth0": 65520}))
    with pytest.raises(Unsupported, match="the fact link-mtus is not known"):
        prepare("bandwidth", {"rate": "1mbit"}, READY)


def test_inbound_packets_go_through_a_device_of_nodefall() -> None:
    head = "filter add dev eth0 parent ffff: protocol"
    assert lines("packet-loss", LOSS | {"direction": "in", "families": ["ipv4"]}) == [
        "qdisc add dev nodefall0 root handle 4e10: netem limit 100000 loss 30%",
        "qdisc add dev eth0 ingress",
        f"{head} ip pref 20047 flower ip_proto tcp src_ip 10.9.9.9/32 dst_port 22 action pass",
        f"{head} ip pref 20048 flower src_ip 10.0.0.1/32 action mirred egress redirect dev nodefall0",
    ]
    described = describe("packet-loss", LOSS | {"direction": "in"}, READY)
    assert described.inject[0].startswith("sh -c 'modprobe -q ifb numifbs=0; ip link add nodefall0 type ifb && ")
    script = 'tc filter del dev "$1" ingress protocol ip pref 20047 && tc qdisc del dev "$1" ingress'
    assert described.undo == [f"sh -c '{script}; ip link del nodefall0' nodefall eth0 unless netem is False"]


def test_both_directions_are_undone_at_once() -> None:
    both = lines("packet-loss", LOSS | {"direction": "both"})
    assert [line.split(" flower")[0] for line in both if line.startswith("qdisc")] == [
        "qdisc add dev eth0 root handle 4e0f: prio bands 4",
        "qdisc add dev eth0 parent 4e0f:4 handle 4e10: netem limit 100000 loss 30%",
        "qdisc add dev nodefall0 root handle 4e10: netem limit 100000 loss 30%",
        "qdisc add dev eth0 ingress",
    ]
    undo, _ = describe("packet-loss", LOSS | {"direction": "both"}, READY).undo
    assert undo.startswith('sh -c \'tc qdisc del dev "$1" root handle 4e0f:; tc filter del dev')


def test_ingress_is_added_just_before_the_filter_by_which_undo_knows_it() -> None:
    both = lines("packet-loss", LOSS | {"direction": "both"})
    assert "pref 20047" in both[both.index("qdisc add dev eth0 ingress") + 1]


def test_a_connection_over_ipv6_keeps_its_neighbours() -> None:
    target = changed(ssh_peer={"address": "fd00::9", "port": 22})
    found = [line.split("flower ")[1] for line in lines("packet-loss", LOSS, target) if "pref 1 " in line]
    exempt = [f"ip_proto icmpv6 type {kind} classid 4e0f:1" for kind in (135, 136)]
    assert found == ["ip_proto tcp dst_ip fd00::9/128 src_port 22 classid 4e0f:1", *exempt]


CIDR = {"from": "cidr", "cidrs": ["10.7.0.0/16", "10.7.1.1/32", "fd07::/64"]}


def test_networks() -> None:
    routes = "peer-routes?networks=10.7.0.0%2F16%2C10.7.1.1%2F32%2Cfd07%3A%3A%2F64"
    assert routes in ACTIONS["packet-loss"].needs_with(ACTIONS["packet-loss"].params.model_validate(LOSS | CIDR)).facts
    target = replace(READY, facts=FACTS | {routes: {"10.7.0.1": "eth0"}})
    filters = [line for line in lines("packet-loss", LOSS | CIDR, target) if "pref 1 " not in line and "filter" in line]
    assert [line.split("dst_ip ")[1].split()[0] for line in filters] == ["10.7.0.0/16", "fd07::/64"]


def test_each_address_has_a_filter() -> None:
    """Also those that are adjacent, and merge to a network in the rules of a partition."""
    both = replace(READY, facts=FACTS | {"server-addresses": ["10.0.0.4", "10.0.0.5"], "api-peers": []})
    filters = [line for line in lines("packet-loss", LOSS, both) if "pref 2" in line]
    assert [line.split("dst_ip ")[1].split()[0] for line in filters] == ["10.0.0.1/32", "10.0.0.4/32", "10.0.0.5/32"]


def test_other_nodes() -> None:
    text = "\n".join(lines("packet-loss", LOSS | {"from": "nodes"}))
    assert "dst_ip 10.0.0.3/32" in text
    assert "dst_ip 10.0.0.1/32" in text
    assert "10.0.0.2" not in text


def test_undo_and_failsafe_timer_delete_only_the_root_of_nodefall() -> None:
    described = describe("packet-loss", LOSS | {"duration": "100s"}, READY)
    before = f"qdiscs?interface=eth0 is { ({'eth0': [DEFAULT]}) }"
    assert described.inject == ["tc -batch -"]
    assert described.failsafe == "nodefall-run-slow after 100s: tc qdisc del dev eth0 root handle 4e0f:"
    assert described.undo == [
        "tc qdisc del dev eth0 root handle 4e0f: unless netem is False",
        f"{RENEW} unless {before} when netem is False and {KIND}",
    ]
    assert described.proof == ["netem is False", before, "the node is Ready"]
    assert described.disarm == "nodefall-run-slow"
    assert described.preconditions == [
        "netem is False",
        before,
        KIND,
        "ssh-peer is {'address': '10.9.9.9', 'port': 22}",
    ]
    assert describe("latency", {"delay": "1s"}, READY).failsafe.startswith("nodefall-run-slow after 600s")


@pytest.mark.parametrize("fact", sorted(FACTS))
def test_a_host_without_a_needed_fact_is_refused_by_its_name(fact: str) -> None:
    facts = {name: value for name, value in FACTS.items() if name != fact}
    with pytest.raises(Unsupported, match=re.escape(f"the fact {fact} is not known: there is no such program")):
        prepare("packet-loss", LOSS, replace(READY, facts=facts, unknown={fact: "there is no such program"}))


def changed(**facts: Any) -> Target:
    return replace(READY, facts=FACTS | {name.replace("_", "-"): value for name, value in facts.items()})


def defaults_to(kind: str, qdiscs: Any = None) -> Target:
    target = changed(qdiscs={"eth0": qdiscs or [DEFAULT]})
    return replace(target, facts={**target.facts, "sysctl?key=net.core.default_qdisc": kind})


@pytest.mark.parametrize("kind", ["fq_codel", "fq"])
def test_a_default_that_nothing_follows_does_not_matter(kind: str) -> None:
    """The root is not touched, or it has no queue."""
    for target, given in (
        (defaults_to(kind), LOSS | {"direction": "in"}),
        (defaults_to(kind, [DEFAULT | {"kind": "noqueue"}]), LOSS),
    ):
        described = describe("packet-loss", given, target)
        assert len(described.undo) == 1
        assert not [check for check in described.preconditions if "sysctl" in check]
    assert len(describe("packet-loss", LOSS, defaults_to("fq_codel", MULTIQUEUE)).undo) == 2


@pytest.mark.parametrize(
    ("target", "given", "why"),
    [
        (changed(netem={"interface": "eth0"}), LOSS, "still has a queueing discipline of nodefall"),
        (changed(qdiscs={"eth0": [DEFAULT | {"kind": "htb", "handle": "1:"}]}), LOSS, "has htb 1:: only the kernel's"),
        (defaults_to("fq"), LOSS, "eth0 of n1 has fq_codel, and the kernel would restore fq (net.core.default_qdisc)"),
        (defaults_to("fq", MULTIQUEUE), LOSS, "eth0 of n1 has fq_codel, and the kernel would restore fq"),
        (changed(qdiscs={}), LOSS, "no queueing discipline that tc lists"),
        (changed(peer_routes={"10.0.0.1": "eth0", "fd00::1": "eth1"}), LOSS, "through interfaces eth0, eth1"),
        (changed(peer_routes={}), LOSS, "through no interface"),
        (replace(READY, objects={}), LOSS | {"from": "nodes"}, "no address of another node"),
        (changed(netem_support=["netem"]), LOSS | {"direction": "in"}, "cannot do ingress"),
        (changed(qdiscs={"eth0": [DEFAULT, CLSACT]}), LOSS | {"direction": "both"}, "has clsact ffff:"),
        (changed(qdiscs={"eth0": [CLSACT]}), LOSS, "no queueing discipline that tc lists"),
        (changed(shared_kernel=True), LOSS, "is not its own but that of its machine"),
        (FEW, LOSS | {"from": "nodes", "families": ["ipv6"]}, "no peer has an address of ipv6"),
    ],
)
def test_refusals(target: Target, given: dict[str, Any], why: str) -> None:
    with pytest.raises(Unsupported) as refused:
        prepare("packet-loss", given, target)
    assert why in refused.value.message


def test_filters_of_others_for_inbound_packets_stay() -> None:
    """As those of Cilium and Calico with eBPF."""
    target = changed(qdiscs={"eth0": [DEFAULT, CLSACT]})
    assert describe("packet-loss", LOSS, target).preconditions[1] == (
        f"qdiscs?interface=eth0 is { ({'eth0': [DEFAULT, CLSACT]}) }"
    )


def test_a_container_with_a_separate_network_is_hit() -> None:
    assert lines("packet-loss", LOSS, changed(shared_kernel=True, link_kinds={"eth0": "veth"}))


def test_a_rate_is_refused_without_tbf() -> None:
    with pytest.raises(Unsupported, match="cannot do tbf"):
        prepare("bandwidth", {"rate": "1mbit"}, changed(netem_support=["netem", "ingress"]))


def test_a_distribution_without_its_table_is_refused() -> None:
    target = changed(netem_support=["netem"])
    with pytest.raises(Unsupported, match="no table of the normal distribution"):
        prepare("latency", {"delay": "50ms", "jitter": "5ms", "distribution": "normal"}, target)
    assert lines("latency", {"delay": "50ms", "jitter": "5ms"}, target)


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("packet-loss", {}),
        ("packet-loss", {"percent": 100}),
        ("packet-loss", {"percent": 0}),
        ("packet-loss", LOSS | {"direction": "up"}),
        ("packet-loss", LOSS | {"from": "cidr"}),
        ("packet-loss", LOSS | {"cidrs": ["10.0.0.0/8"]}),
        ("packet-loss", LOSS | {"from": "cidr", "cidrs": ["fe80::1%eth0; reboot"]}),
        ("packet-loss", LOSS | {"families": []}),
        ("packet-corrupt", {"percent": 100}),
        ("packet-corrupt", {"percent": 30, "direction": "in"}),
        ("packet-corrupt", {"percent": 30, "direction": "both"}),
        ("packet-duplicate", {"percent": 0}),
        ("bandwidth", {}),
        ("bandwidth", {"rate": "1000"}),
        ("bandwidth", {"rate": "63kbit"}),
        ("bandwidth", {"rate": "1gbit"}),
        ("bandwidth", {"rate": "1mbit; reboot"}),
        ("latency", {"delay": "0s"}),
        ("latency", {"delay": "11s"}),
        ("latency", {"delay": "10ms", "jitter": "20ms"}),
        ("latency", {"delay": "10ms", "distribution": "normal"}),
        ("latency", {"delay": "10ms", "jitter": "1ms", "distribution": "pareto"}),
    ],
)
def test_invalid_parameters(action: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ACTIONS[action].params.model_validate(given)
