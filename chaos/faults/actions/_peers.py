"""Peers of a node in the cluster's objects, for partitions."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.core.labels import CONTROL_PLANE_LABELS
from chaos.faults.actions._packetfilter import merge_networks, parse_network

NODES = "/api/v1/nodes"
BLACK_HOLES = "black-hole-routes"
_Network = IPv4Network | IPv6Network
_LARGEST_BLOCK = {4: 20, 6: 116}  # prefix, by version: blockSize of Calico's IPPool


def all_nodes(target: Target) -> list[dict[str, Any]]:
    """All Nodes, the target's among them."""
    nodes = target.objects.get(NODES) or {}
    return list(nodes.get("items") or [])


def own_node(target: Target) -> list[dict[str, Any]]:
    """The target's Node, if it is known."""
    return [node for node in all_nodes(target) if node["metadata"]["name"] == target.node]


def other_nodes(target: Target) -> list[dict[str, Any]]:
    """The other Nodes."""
    return [node for node in all_nodes(target) if node["metadata"]["name"] != target.node]


def addresses_of(nodes: Iterable[dict[str, Any]]) -> list[str]:
    """Internal and external addresses of Nodes."""
    kinds = ("InternalIP", "ExternalIP")
    return [
        address["address"]
        for node in nodes
        for address in node.get("status", {}).get("addresses") or []
        if address["type"] in kinds
    ]


def pod_networks(nodes: Iterable[dict[str, Any]]) -> list[str]:
    """Pod networks of Nodes, in CIDR."""
    return [network for node in nodes for network in node.get("spec", {}).get("podCIDRs") or []]


def own_networks(target: Target) -> list[str]:
    """Pod networks of the target: its podCIDRs, and the blocks that Calico has given to it. Raises ValueError.

    Where such a block is within the podCIDRs of any node, pods have no addresses of podCIDRs as such.
    """
    blocks = [str(block) for block in _blocks(target)]
    return blocks if has_own_blocks(target) else [*pod_networks(own_node(target)), *blocks]


def has_own_blocks(target: Target) -> bool:
    """Whether Calico has given the target a block within podCIDRs, which say nothing then. Raises ValueError."""
    within = [parse_network(text) for text in pod_networks(all_nodes(target))]
    return any(_is_within(block, network) for block in _blocks(target) for network in within)


def node_networks(target: Target) -> list[str]:
    """Addresses and pod networks of other nodes, without the target's own. Raises ValueError, and Unsupported if none.

    Calico by default ignores podCIDRs: a block of this node may be within those of another.
    """
    others = other_nodes(target)
    left = [parse_network(text) for text in (*addresses_of(others), *pod_networks(others))]
    for block in _blocks(target):
        left = [part for network in left for part in _without(network, block)]
    return require_peers(target, map(str, left), "another node")


def _blocks(target: Target) -> list[_Network]:
    found = target.require_fact(BLACK_HOLES, "the node's own pods must be known")
    return [net for net in map(parse_network, found) if net.prefixlen >= _LARGEST_BLOCK[net.version]]


def _is_within(one: _Network, other: _Network) -> bool:
    return one.version == other.version and one.subnet_of(other)  # type: ignore[arg-type]


def _without(network: _Network, block: _Network) -> list[_Network]:
    if _is_within(network, block):
        return []
    return [*network.address_exclude(block)] if _is_within(block, network) else [network]  # type: ignore[arg-type]


def control_planes(nodes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the Nodes that run a part of the control plane, by their labels."""
    return [node for node in nodes if any(role in node["metadata"].get("labels", {}) for role in CONTROL_PLANE_LABELS)]


def known_servers(target: Target) -> list[str]:
    """Addresses of the API server, by its name and by the kubelet's connections. Raises Unsupported."""
    why = "the control plane must be found"
    return [
        *target.require_fact("server-addresses", why),
        *(address for address, _ in target.require_fact("api-peers", why)),
    ]


def control_plane(target: Target) -> list[str]:
    """Addresses of the control plane besides the target's own. Raises Unsupported where none is known."""
    planes = control_planes(other_nodes(target))
    return require_peers(target, [*known_servers(target), *addresses_of(planes)], "the control plane")


def require_peers(target: Target, found: Iterable[str], whose: str) -> list[str]:
    """Those of ``found`` that are not the target's own, merged. Raises Unsupported if none is left."""
    own = {parse_network(text) for text in addresses_of(own_node(target))}
    networks = [parse_network(text) for text in found]
    peers = merge_networks(str(net) for net in networks if net not in own and not net.is_loopback)
    if not peers:
        raise Unsupported(f"no address of {whose} is known that is not {target.node}'s own", hint="use from: cidr")
    return peers


def capture_reachability(target: Target) -> dict[str, bool]:
    """Reachability of the API by address family. Raises Unsupported where no partition from it is possible."""
    reachable: dict[str, bool] = target.require_fact("api-reachable", "it proves the partition")
    if not any(reachable.values()):
        raise Unsupported(
            f"{target.node} does not reach the API server now", hint="restore its connection to the API server first"
        )
    if set(known_servers(target)) & set(addresses_of(own_node(target))):
        why = f"{target.node} runs the API server that it uses, and no packet filter can block that"
        raise Unsupported(why, hint="choose a node without a control plane, or from: nodes")
    return reachable
