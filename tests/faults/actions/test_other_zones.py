"""From: other-zones: which peers, what is refused, and what is done about the control plane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.faults.actions._peers import servers_are_in_other_zones, zone_addresses
from tests.kit.actionkit import ACTIONS, describe, prepare

ZONES = {"from": "other-zones"}
LOSS = ZONES | {"percent": 30}
QDISC = {"kind": "fq_codel", "handle": "0:", "root": True}
NETEM = ("bandwidth", "latency", "packet-corrupt", "packet-duplicate", "packet-loss")
WITH = {"bandwidth": {"rate": "1mbit"}, "latency": {"delay": "1s"}, "partition": {}, "mtu": {}}


def node(
    name: str, zone: str, addresses: Iterable[str], pods: Iterable[str] = (), *, plane: bool = False
) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    labels |= {"node-role.kubernetes.io/control-plane": ""} if plane else {}
    found = [{"type": "InternalIP", "address": address} for address in addresses]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDRs": list(pods)},
        "status": {"addresses": [*found, {"type": "Hostname", "address": name}]},
    }


TARGET = node("n1", "a", ["10.0.0.11", "fd00::11"], ["10.244.1.0/24"])
NEAR = node("n2", "a", ["10.0.0.12", "fd00::12"], ["10.244.2.0/24"])
FAR = node("n3", "b", ["10.0.0.13", "fd00::13"], ["10.244.3.0/24", "fd01:3::/64"])
FARTHER = node("n4", "c", ["10.0.0.14"], ["10.244.4.0/24"])
NOWHERE = node("n5", "", ["10.0.0.15"], ["10.244.5.0/24"])
PLANE = node("cp", "", ["10.0.0.1"], ["10.244.0.0/24"], plane=True)
FAR_PLANE = node("cp", "c", ["10.0.0.1"], ["10.244.0.0/24"], plane=True)
NEAR_PLANE = node("cq", "a", ["10.0.0.2"], ["10.244.9.0/24"], plane=True)
ALL = (PLANE, TARGET, NEAR, FAR, FARTHER, NOWHERE)
ADDRESSES = [f"10.0.0.{number}" for number in (1, 2, 11, 12, 13, 14, 15, 100)]
FACTS: dict[str, Any] = {
    "netem-support": ["netem", "normal", "tbf", "ingress"],
    "shared-kernel": False,
    "link-kinds": {"eth0": ""},
    "link-mtus": {"eth0": 1500},
    "netem": False,
    "qdiscs": {"eth0": [QDISC]},
    "peer-routes?by=zone": dict.fromkeys([*ADDRESSES, "fd00::12", "fd00::13", "fd00::100"], "eth0"),
    "server-addresses": ["10.0.0.100", "fd00::100"],  # of a load balancer
    "api-peers": [["10.0.0.1", 6443]],
    "api-reachable": {"ipv4": True, "ipv6": True},
    "black-hole-routes": [],
    "nft": "1.0.6",
    "nft-rules": False,
    "ssh-peer": {"address": "10.9.9.9", "port": 22},
    "sysctl?key=net.core.default_qdisc": "fq_codel",
}


def target(*nodes: dict[str, Any], **facts: Any) -> Target:
    known = FACTS | {name.replace("_", "-"): value for name, value in facts.items()}
    return Target("n1", facts=known, objects={"/api/v1/nodes": {"items": nodes}}, tag="run-do", max_duration=600.0)


def hit(found: Target, **given: Any) -> list[str]:
    """Networks whose packets are dropped by chance."""
    lines = str(prepare("packet-loss", LOSS | given, found).batch).splitlines()
    end = "src_ip" if given.get("direction") == "in" else "dst_ip"
    return [line.split(f"{end} ")[1].split()[0] for line in lines if end in line and "port" not in line]


def blocked(found: Target, action: str = "partition", **given: Any) -> str:
    return str(prepare(action, ZONES | given, found).rules)


def test_nodes_in_other_zones_with_both_families_and_their_pods() -> None:
    """Not a node of the own zone, nor one without the label, as here the control plane."""
    wanted = ["10.0.0.13/32", "10.0.0.14/32", "fd00::13/128", "10.244.3.0/24", "10.244.4.0/24", "fd01:3::/64"]
    assert hit(target(*ALL)) == wanted
    assert hit(target(*ALL), direction="in") == wanted
    assert hit(target(*ALL), families=["ipv6"]) == ["fd00::13/128", "fd01:3::/64"]


@pytest.mark.parametrize("action", ["partition", "mtu"])
def test_rules_have_the_same_peers(action: str) -> None:
    text = blocked(target(*ALL), action)
    assert "ip daddr { 10.0.0.13, 10.0.0.14, 10.244.3.0/24, 10.244.4.0/24 }" in text
    assert "ip6 daddr { fd00::13, fd01:3::/64 }" in text
    for address in ("10.0.0.12", "10.0.0.15", "10.244.2.0", "10.244.5.0", "10.0.0.100", "{ 10.0.0.1,"):
        assert address not in text
    assert "ip daddr 10.9.9.9 tcp sport 22 accept" in text


REFUSED: list[tuple[tuple[dict[str, Any], ...], str]] = [
    ((PLANE, NEAR, FAR), "n1 has no label topology.kubernetes.io/zone"),
    ((node("n1", "", ["10.0.0.11"]), FAR), "n1 has no label topology.kubernetes.io/zone"),
    ((TARGET,), "every node has the same label topology.kubernetes.io/zone as n1: a"),
    ((TARGET, NEAR, NOWHERE, PLANE), "every node has the same label topology.kubernetes.io/zone as n1"),
    ((TARGET, node("n3", "b", [])), "no address of a node in another zone is known"),
    ((TARGET, FAR, node("n2", "a", ["10.0.0.13"])), "n1: nodes in other zones share 10.0.0.13/32 with nodes"),
    ((TARGET, FAR, node("n5", "", ["fd00::13"])), "nodes in other zones share fd00::13/128"),
    ((TARGET, FAR, node("n2", "a", ["10.0.0.12"], ["10.244.3.128/25"])), "share 10.244.3.128/25"),
    ((TARGET, FAR, node("n2", "a", ["10.0.0.12"], ["10.244.0.0/16"])), "share 10.244.3.0/24"),
    ((TARGET, node("n3", "b", ["x; reboot"])), "can be made of the cluster's addresses"),
    ((TARGET, FAR, node("n2", "a", ["fe80::1%eth0"])), "can be made of the cluster's addresses"),
]


@pytest.mark.parametrize("action", [*NETEM, "partition", "mtu"])
@pytest.mark.parametrize(("nodes", "why"), REFUSED)
def test_refusals(action: str, nodes: tuple[dict[str, Any], ...], why: str) -> None:
    with pytest.raises(Unsupported) as refused:
        prepare(action, ZONES | WITH.get(action, {"percent": 30}), target(*nodes))
    assert why in refused.value.message
    assert "cluster's addresses" in why or refused.value.hint


def test_what_others_share_with_the_target_is_no_peer() -> None:
    """As with from: nodes: an external address behind which all are."""
    shared = [replace_addresses(each, "192.0.2.1") for each in (TARGET, NEAR, FAR)]
    assert hit(target(*shared)) == ["10.0.0.13/32", "fd00::13/128", "10.244.3.0/24", "fd01:3::/64"]


def replace_addresses(found: dict[str, Any], more: str) -> dict[str, Any]:
    status = {"addresses": [*found["status"]["addresses"], {"type": "ExternalIP", "address": more}]}
    return {**found, "status": status}


def test_several_interfaces_to_other_zones_are_refused() -> None:
    routes = {"peer-routes?by=zone": {"10.0.0.13": "eth0", "10.0.0.14": "eth1"}}
    with pytest.raises(Unsupported, match="through interfaces eth0, eth1"):
        hit(replace(target(*ALL), facts=FACTS | routes))
    routes = {"peer-routes?by=zone": {"10.0.0.13": "eth0", "10.0.0.12": "eth1"}}  # another one to the own zone
    assert hit(replace(target(*ALL), facts=FACTS | routes))


API = ["10.0.0.1/32", "10.0.0.100/32", "fd00::100/128"]


@pytest.mark.parametrize(
    ("planes", "found"),
    [
        ((PLANE,), []),  # it is in no zone
        ((FAR_PLANE,), API),
        ((FAR_PLANE, NEAR_PLANE), API[:1]),
        ((FAR_PLANE, node("cr", "", ["10.0.0.3"], plane=True)), API[:1]),
        ((NEAR_PLANE,), []),
        ((), []),  # a managed one
    ],
)
def test_a_control_plane_in_other_zones_is_hit_with_its_load_balancer(
    planes: tuple[dict[str, Any], ...], found: list[str]
) -> None:
    cluster = target(*planes, TARGET, NEAR, FAR)
    assert [network for network in hit(cluster) if network in API] == found
    assert servers_are_in_other_zones(cluster) == (found == API)


def test_a_partition_from_all_control_planes_proves_by_the_api_that_it_is_undone() -> None:
    api = "api-reachable is {'ipv4': True, 'ipv6': True}"
    cut = target(FAR_PLANE, TARGET, FAR)
    assert describe("partition", ZONES, cut).proof == ["nft-rules is False", api, "the node is Ready"]
    assert api not in describe("partition", ZONES | {"traffic": "pods"}, cut).proof
    assert api not in describe("partition", ZONES, target(*ALL)).proof
    with pytest.raises(Unsupported, match="does not reach the API server now"):
        blocked(target(FAR_PLANE, TARGET, FAR, api_reachable={"ipv4": False}))


def test_a_target_with_an_api_server_of_its_own_keeps_it() -> None:
    own = node("n1", "a", ["10.0.0.11"], plane=True)
    found = target(own, FAR_PLANE, FAR, server_addresses=["10.0.0.11"], api_peers=[["10.0.0.11", 6443]])
    assert "10.0.0.11" not in blocked(found)
    assert not servers_are_in_other_zones(found)


CALICO = {"black_hole_routes": ["10.244.3.64/26"]}


def test_where_calico_ignores_podcidrs_only_addresses_of_nodes_count() -> None:
    """Pods of the own zone may have addresses within podCIDRs of other zones."""
    cluster = target(*ALL, **CALICO)
    assert hit(cluster) == ["10.0.0.13/32", "10.0.0.14/32", "fd00::13/128"]
    assert "ip saddr { 10.0.0.13, 10.0.0.14 }" in blocked(cluster, traffic="host")
    for action in ("partition", "mtu"):
        for traffic in ("pods", "all"):
            with pytest.raises(Unsupported, match="Calico ignores podCIDRs") as refused:
                blocked(cluster, action, traffic=traffic)
            assert "traffic: host" in refused.value.hint


@pytest.mark.parametrize("action", NETEM)
def test_pings_go_by_zone(action: str) -> None:
    found = ACTIONS[action]
    params = found.params.model_validate(ZONES | WITH.get(action, {"percent": 30}))
    pings = "ping-bursts" if action == "bandwidth" else "round-trips"
    assert f"{pings}?by=zone" in found.needs_with(params).proof_facts
    assert {"peer-routes?by=zone", "black-hole-routes"} <= set(found.needs_with(params).facts)


_NUMBERED = st.integers(0, 6)


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.sets(_NUMBERED, min_size=1)), max_size=6))
def test_no_address_of_a_node_that_is_in_no_other_zone_is_a_peer(found: list[tuple[str, set[int]]]) -> None:
    made = [node(f"m{i}", zone, [f"10.0.0.{n}" for n in sorted(held)]) for i, (zone, held) in enumerate(found)]
    own = node("n1", "a", ["10.0.0.11", "10.0.0.3"])
    try:
        text = prepare("partition", ZONES, target(own, *made)).rules
        peers = zone_addresses(target(own, *made))
    except Unsupported:
        return
    assert peers
    near = {f"10.0.0.{n}" for zone, held in found for n in held if zone in ("", "a")}
    words = {word.strip(",") for line in text.splitlines() if "drop" in line for word in line.split()}
    assert not words & (near | {"10.0.0.3", "10.0.0.11"})
