"""Dns-failure and mtu: rules, refusals, failsafe timer and undo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from chaos.core.action import Target
from chaos.core.api_fact import pods_path
from chaos.core.errors import Unsupported
from chaos.faults.actions.dns_failure import LookupState
from tests.kit.actionkit import ACTIONS, describe, prepare

LOOKUP = "dns-lookup?name=kubernetes.io"


def node(name: str, address: str, *networks: str) -> dict[str, Any]:
    status = {"addresses": [{"type": "InternalIP", "address": address}]}
    return {"metadata": {"name": name, "labels": {}}, "spec": {"podCIDRs": list(networks)}, "status": status}


NODES = [node("n1", "10.0.0.2", "10.244.1.0/24", "fd00:1::/64"), node("n2", "10.0.0.3", "10.244.2.0/24")]
FACTS: dict[str, Any] = {
    "nft": "1.0.6",
    "nft-rules": False,
    LOOKUP: True,
    "server-addresses": ["10.0.0.1", "fd00::1"],
    "api-peers": [],
    "ssh-peer": {"address": "10.9.9.9", "port": 22},
    "black-hole-routes": [],
    "peer-routes": {"10.0.0.1": "eth0", "10.0.0.3": "eth0"},
    "nft-early-reject": True,
}
BY_KIND = 'iifname != { "eth0" } meta iifkind { "veth", "bridge" }'
BAD = {"/api/v1/nodes": {"items": [node("n1", "10.0.0.2", "x; reboot")]}}
READY = Target("n1", facts=FACTS, objects={"/api/v1/nodes": {"items": NODES}}, tag="run-do", max_duration=600.0)


def rules(action: str, given: dict[str, Any], target: Target = READY) -> list[str]:
    return [line.strip() for line in str(prepare(action, given, target).rules).splitlines()]


def test_lookups_of_host_and_pods_are_dropped_before_destination_nat() -> None:
    assert rules("dns-failure", {}) == [
        "table inet nodefall {",
        "chain out {",
        "type filter hook output priority -150; policy accept;",
        "udp dport 53 counter drop",
        "tcp dport 53 counter drop",
        "}",
        "chain pods {",
        "type filter hook prerouting priority -150; policy accept;",
        "ip saddr 10.244.1.0/24 udp dport 53 counter drop",
        "ip saddr 10.244.1.0/24 tcp dport 53 counter drop",
        "ip6 saddr fd00:1::/64 udp dport 53 counter drop",
        "ip6 saddr fd00:1::/64 tcp dport 53 counter drop",
        "}",
        "}",
    ]


@pytest.mark.parametrize(
    ("given", "chains"),
    [({"traffic": "host"}, ["chain out {"]), ({"traffic": "pods"}, ["chain pods {"])],
)
def test_whose_lookups(given: dict[str, Any], chains: list[str]) -> None:
    assert [line for line in rules("dns-failure", given) if line.startswith("chain")] == chains


def test_pods_of_a_node_without_networks_are_recognized_by_their_interfaces() -> None:
    found = rules("dns-failure", {"traffic": "pods"}, replace(READY, objects={}))
    assert found[3] == f"{BY_KIND} udp dport 53 counter drop"
    alone = changed(peer_routes={})
    found = rules("dns-failure", {"traffic": "pods"}, replace(alone, objects={}))
    assert found[3] == 'meta iifkind { "veth", "bridge" } udp dport 53 counter drop'


@pytest.mark.parametrize(
    ("addresses", "is_host_network", "by_interface"),
    [
        (["10.244.1.7", "fd00:1::7"], False, False),
        (["192.168.5.7"], False, True),
        (["10.244.1.7", "fd00:9::7"], False, True),
        (["10.0.0.2"], True, False),
    ],
)
def test_pods_with_addresses_outside_of_the_networks_of_the_node_are_recognized_by_their_interfaces(
    addresses: list[str], is_host_network: bool, by_interface: bool
) -> None:
    """Calico and Cilium by default ignore the podCIDRs that kubeadm gives to a Node."""
    pods = [
        {"spec": {"hostNetwork": is_host_network}, "status": {"podIPs": [{"ip": text} for text in addresses]}},
        {"spec": {}, "status": {}},
    ]
    target = replace(READY, objects={**READY.objects, pods_path("n1"): {"items": pods}})
    assert rules("dns-failure", {"traffic": "pods"}, target)[3].startswith(BY_KIND) is by_interface


def test_rejected_lookups() -> None:
    found = rules("dns-failure", {"how": "reject", "traffic": "host"})
    assert found[3:5] == ["udp dport 53 counter reject", "tcp dport 53 counter reject with tcp reset"]


def test_large_packets_are_dropped_but_those_of_nodefall() -> None:
    found = rules("mtu", {"size": 1400})
    assert [line for line in found if "length" in line] == [
        "ip saddr { 10.0.0.1 } meta length > 1400 counter drop",
        "ip6 saddr { fd00::1 } meta length > 1400 counter drop",
        "ip daddr { 10.0.0.1 } meta length > 1400 counter drop",
        "ip6 daddr { fd00::1 } meta length > 1400 counter drop",
        "ip saddr { 10.0.0.1 } meta length > 1400 counter drop",
        "ip daddr { 10.0.0.1 } meta length > 1400 counter drop",
        "ip6 saddr { fd00::1 } meta length > 1400 counter drop",
        "ip6 daddr { fd00::1 } meta length > 1400 counter drop",
    ]
    for exempt in ("ip saddr 10.9.9.9 tcp dport 22 accept", "ip daddr 10.9.9.9 tcp sport 22 accept"):
        assert found.index(exempt) < next(number for number, line in enumerate(found) if "length" in line) + 8
    assert all("meta length" in line for line in found if "drop" in line)


def test_large_packets_to_other_nodes_and_networks() -> None:
    assert "ip daddr { 10.0.0.3, 10.244.2.0/24 } meta length > 1280 counter drop" in rules("mtu", {"from": "nodes"})
    assert "ip saddr { 10.7.0.0/16 } meta length > 1280 counter drop" in rules(
        "mtu", {"from": "cidr", "cidrs": ["10.7.0.0/16"], "traffic": "host"}
    )


@pytest.mark.parametrize(
    ("action", "proof"),
    [
        ("dns-failure", ["nft-rules is False", f"{LOOKUP} is True", "the node is Ready"]),
        ("mtu", ["nft-rules is False", "the node is Ready"]),
    ],
)
def test_undo_and_failsafe_timer_delete_the_table(action: str, proof: list[str]) -> None:
    described = describe(action, {"duration": "100s"}, READY)
    assert described.inject == ["nft -f -"]
    assert described.failsafe == "nodefall-run-do after 100s: nft delete table inet nodefall"
    assert described.undo == ["nft delete table inet nodefall unless nft-rules is False"]
    assert described.proof == proof
    assert described.disarm == "nodefall-run-do"
    assert described.preconditions == ["nft-rules is False", "ssh-peer is {'address': '10.9.9.9', 'port': 22}"]


def changed(**facts: Any) -> Target:
    return replace(READY, facts=FACTS | {name.replace("_", "-"): value for name, value in facts.items()})


@pytest.mark.parametrize(
    ("action", "given", "target", "why"),
    [
        ("dns-failure", {}, changed(nft_rules={"packets": 0}), "still has packet filter rules of nodefall"),
        ("mtu", {}, changed(nft_rules={"packets": 0}), "still has packet filter rules of nodefall"),
        ("dns-failure", {}, replace(READY, facts=FACTS | {LOOKUP: False}), "cannot look up kubernetes.io now"),
        (
            "dns-failure",
            {"how": "reject"},
            changed(nft_early_reject=False),
            "cannot do (Linux 5.9 and",
        ),
        ("dns-failure", {"how": "reject", "traffic": "pods"}, changed(nft_early_reject=False), "its kernel cannot do"),
        ("dns-failure", {}, replace(READY, objects=BAD), "no rules can be made of its podCIDRs"),
        ("mtu", {"from": "nodes"}, replace(READY, objects={}), "no address of another node"),
        ("mtu", {}, changed(server_addresses=[]), "no address of the control plane"),
    ],
)
def test_refusals(action: str, given: dict[str, Any], target: Target, why: str) -> None:
    with pytest.raises(Unsupported) as refused:
        prepare(action, given, target)
    assert why in refused.value.message


def test_pods_alone_need_no_lookup_of_the_host() -> None:
    target = replace(READY, facts=FACTS | {LOOKUP: False})
    assert describe("dns-failure", {"traffic": "pods"}, target).proof == ["nft-rules is False", "the node is Ready"]


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("dns-failure", {"name": "kubernetes.io; reboot"}),
        ("dns-failure", {"name": "-s"}),
        ("dns-failure", {"name": "a" * 64}),
        ("dns-failure", {"name": ""}),
        ("dns-failure", {"how": "refuse"}),
        ("mtu", {"size": 575}),
        ("mtu", {"size": 9001}),
        ("mtu", {"from": "cidr"}),
        ("mtu", {"cidrs": ["10.0.0.0/8"]}),
        ("mtu", {"from": "cidr", "cidrs": ["10.0.0.0/33"]}),
    ],
)
def test_invalid_parameters(action: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ACTIONS[action].params.model_validate(given)


def test_a_state_that_somebody_has_written_names_no_other_lookup() -> None:
    state = {"rules": "", "tag": "run-do", "seconds": 1.0, "peer": {}}
    for name in ("x?y=z", "-s", "a b", "a\n"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(state | {"name": name}, LookupState)
