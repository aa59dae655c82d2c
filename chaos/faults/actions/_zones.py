"""Nodes in other zones than the target's, by the label topology.kubernetes.io/zone; those without it are in none."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.core.labels import ZONE_LABEL
from chaos.faults.actions._packetfilter import merge_networks, parse_network
from chaos.faults.actions._peers import (
    addresses_of,
    all_nodes,
    control_planes,
    has_own_blocks,
    known_servers,
    other_nodes,
    own_node,
    pod_networks,
    require_peers,
)
from chaos.faults.readings._nodes import in_other_zones, label_of


def zone_addresses(target: Target) -> list[str]:
    """The merged addresses of nodes in other zones, without the addresses of the target. Raises ValueError,
    Unsupported.

    If every control plane is in another zone, all addresses of the API server are included, also of a load balancer.
    """
    far, near = _sides(target)
    found = [*addresses_of(far), *(known_servers(target) if _has_all_control_planes(target, far) else ())]
    _require_apart(target, found, addresses_of(near))
    return require_peers(target, found, "a node in another zone")


def zone_pod_networks(target: Target) -> list[str]:
    """Pod networks of nodes in other zones, merged. Raises ValueError, Unsupported.

    None where Calico gives addresses within podCIDRs without regard to whose they are: pods of the own zone may have
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

    ``pods``: packets of the target's pods are dropped as well, which are known by the addresses of theirs.
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
    """Those of a managed cluster are no Nodes: their zones are not known."""
    return 0 < len(control_planes(far)) == len(control_planes(all_nodes(target)))


def _sides(target: Target) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The nodes in other zones, and all others but the target. Raises Unsupported without any of the former."""
    zone = "".join(label_of(node, ZONE_LABEL) for node in own_node(target))
    if not zone:
        why = f"{target.node} has no label {ZONE_LABEL}: which zones are others is not known"
        raise Unsupported(why, hint=f"run kubectl label node {target.node} {ZONE_LABEL}=ZONE, or use from: cidr")
    others = other_nodes(target)
    far = in_other_zones(others, zone)
    if not far:
        why = f"no node has another label {ZONE_LABEL} than {zone}, that of {target.node}"
        raise Unsupported(why, hint="label the nodes of the other zones, or use from: cidr")
    return far, [node for node in others if label_of(node, ZONE_LABEL) in ("", zone)]


def _require_apart(target: Target, far: Iterable[str], near: Iterable[str]) -> None:
    """Raises Unsupported if nodes in other zones share an address or network with nodes that are not; ValueError.

    What they share with the target itself is no peer, as with from: nodes.
    """
    own = {parse_network(text) for text in addresses_of(own_node(target))}
    merged = [merge_networks(str(net) for net in map(parse_network, side) if net not in own) for side in (far, near)]
    nets = sorted(map(parse_network, merged[0] + merged[1]), key=lambda n: (n.version, int(n[0]), n.prefixlen))
    for one, other in pairwise(nets):  # those of one side do not overlap, so any that do are neighbours
        if one.version == other.version and one.overlaps(other):
            why = f"nodes in other zones share {other} with nodes that are in none of them"
            raise Unsupported(f"{target.node}: {why}", hint="use from: cidr, with the networks of the other zones")
