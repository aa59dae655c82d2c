"""Peers of a node in the cluster's objects, for partitions.

Nodes in other zones than the target's, by the label topology.kubernetes.io/zone; those without it are in none.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from itertools import pairwise
from typing import Any

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.core.labels import CONTROL_PLANE_LABELS, ZONE_LABEL
from chaos.faults.actions._packetfilter import merge_networks, parse_network
from chaos.faults.readings.pings import in_other_zones, label_of

NODES = "/api/v1/nodes"
BLACK_HOLES = "black-hole-routes"
_Network = IPv4Network | IPv6Network
_LARGEST_BLOCK = {4: 20, 6: 116}  # prefix, by version: blockSize of Calico's IPPool


def all_nodes(target: Target) -> list[dict[str, Any]]:
    """All Nodes, including the target's."""
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
    """The Nodes that run a part of the control plane, by their labels."""
    return [node for node in nodes if any(role in node["metadata"].get("labels", {}) for role in CONTROL_PLANE_LABELS)]


def known_servers(target: Target) -> list[str]:
    """Addresses of the API server, by its name and by the kubelet's connections. Raises Unsupported."""
    why = "the control plane must be found"
    return [
        *target.require_fact("server-addresses", why),
        *(address for address, _ in target.require_fact("api-peers", why)),
    ]


def control_plane(target: Target) -> list[str]:
    """Addresses of the control plane, without the target's own. Raises Unsupported if none is known."""
    planes = control_planes(other_nodes(target))
    return require_peers(target, [*known_servers(target), *addresses_of(planes)], "the control plane")


def require_peers(target: Target, found: Iterable[str], whose: str) -> list[str]:
    """The networks in ``found`` that are not the target's own, merged. Raises Unsupported if none is left."""
    own = {parse_network(text) for text in addresses_of(own_node(target))}
    networks = [parse_network(text) for text in found]
    peers = merge_networks(str(net) for net in networks if net not in own and not net.is_loopback)
    if not peers:
        raise Unsupported(f"no address of {whose} is known that is not {target.node}'s own", hint="use from: cidr")
    return peers


def capture_reachability(target: Target) -> dict[str, bool]:
    """Reachability of the API by address family. Raises Unsupported if no partition from it is possible."""
    reachable: dict[str, bool] = target.require_fact("api-reachable", "it proves the partition")
    if not any(reachable.values()):
        raise Unsupported(
            f"{target.node} does not reach the API server now", hint="restore its connection to the API server first"
        )
    if set(known_servers(target)) & set(addresses_of(own_node(target))):
        why = f"{target.node} runs the API server that it uses, and no packet filter can block that"
        raise Unsupported(why, hint="choose a node without a control plane, or from: nodes")
    return reachable


def zone_addresses(target: Target) -> list[str]:
    """Addresses of nodes in other zones, merged, without the target's own. Raises ValueError, Unsupported.

    If every control plane is in another zone, also all addresses of the API server, including a load balancer's.
    """
    far, near = _sides(target)
    found = [*addresses_of(far), *(known_servers(target) if _has_all_control_planes(target, far) else ())]
    _require_apart(target, found, addresses_of(near))
    return require_peers(target, found, "a node in another zone")


def zone_pod_networks(target: Target) -> list[str]:
    """Pod networks of nodes in other zones, merged. Raises ValueError, Unsupported.

    Empty if Calico assigns addresses within podCIDRs regardless of their node: pods of the own zone may have
    addresses of another node's.
    """
    if has_own_blocks(target):
        return []
    far, near = _sides(target)
    own = pod_networks(own_node(target))
    _require_apart(target, pod_networks(far), [*pod_networks(near), *own, *addresses_of(near)])
    return merge_networks(pod_networks(far))


def zone_networks(target: Target, *, pods: bool) -> list[str]:
    """Addresses and pod networks of nodes in other zones. Raises ValueError, Unsupported.

    ``pods``: packets of the target's pods are dropped as well; the networks then include the peers' pods.
    """
    if pods and has_own_blocks(target):
        why = f"{target.node}: Calico ignores podCIDRs here, so that the pods of other zones are not known"
        raise Unsupported(why, hint="use traffic: host, or from: cidr")
    return merge_networks([*zone_addresses(target), *zone_pod_networks(target)])


def servers_are_in_other_zones(target: Target) -> bool:
    """Whether each API server that the kubelet uses has an address of a node in another zone. Raises ValueError."""
    far = [parse_network(text) for text in zone_addresses(target)]
    servers = [parse_network(text) for text in known_servers(target)]
    return bool(servers) and all(
        any(server.version == net.version and server.subnet_of(net) for net in far)  # type: ignore[arg-type]
        for server in servers
    )


def _has_all_control_planes(target: Target, far: list[dict[str, Any]]) -> bool:
    """Whether all control planes are Nodes. In a managed cluster they are not, so their zones are unknown."""
    return 0 < len(control_planes(far)) == len(control_planes(all_nodes(target)))


def _sides(target: Target) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The nodes in other zones, and all others but the target. Raises Unsupported if no node is in another zone."""
    zone = "".join(label_of(node, ZONE_LABEL) for node in own_node(target))
    if not zone:
        why = f"{target.node} has no label {ZONE_LABEL}: which zones are others is not known"
        raise Unsupported(why, hint=f"run kubectl label node {target.node} {ZONE_LABEL}=ZONE, or use from: cidr")
    others = other_nodes(target)
    far = in_other_zones(others, zone)
    if not far:
        why = f"every node has the same label {ZONE_LABEL} as {target.node}: {zone}"
        raise Unsupported(why, hint="label the nodes of the other zones, or use from: cidr")
    return far, [node for node in others if label_of(node, ZONE_LABEL) in ("", zone)]


def _require_apart(target: Target, far: Iterable[str], near: Iterable[str]) -> None:
    """Raises Unsupported if nodes in other zones share an address or network with nodes that are not; ValueError.

    Addresses that they share with the target itself are not peers, as with from: nodes.
    """
    own = {parse_network(text) for text in addresses_of(own_node(target))}
    merged = [merge_networks(str(net) for net in map(parse_network, side) if net not in own) for side in (far, near)]
    nets = sorted(map(parse_network, merged[0] + merged[1]), key=lambda n: (n.version, int(n[0]), n.prefixlen))
    for one, other in pairwise(nets):  # those of one side do not overlap, so any that do are neighbours
        if one.version == other.version and one.overlaps(other):
            why = f"nodes in other zones share {other} with nodes in no other zone"
            raise Unsupported(f"{target.node}: {why}", hint="use from: cidr, with the networks of the other zones")
