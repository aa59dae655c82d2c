"""A cluster as planning sees it: nodes, pods and their roles."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from chaos.model.kube import Node, Pod, is_ready, is_static

CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
ETCD = "node-role.kubernetes.io/etcd"
ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Nodes by name and all pods, as listed at one moment; ``uid`` is that of the namespace kube-system."""

    uid: str
    nodes: Mapping[str, Node]
    pods: tuple[Pod, ...] = field(default=())

    def ready_nodes(self) -> list[str]:
        """Names of the nodes that are Ready, sorted."""
        return sorted(name for name, node in self.nodes.items() if is_ready(node))

    def etcd_members(self) -> list[str]:
        """Names of the nodes that run etcd: those that k3s and rke2 label so, else the control planes; sorted."""
        labelled = [name for name, node in self.nodes.items() if ETCD in (node.metadata.labels or {})]
        return sorted(labelled or [name for name, node in self.nodes.items() if role(node) == "control-plane"])

    def static_pods(self, node: str) -> tuple[str, ...]:
        """Names of the static pods on a node, sorted."""
        return tuple(sorted(p.metadata.name for p in self.pods if p.spec and p.spec.node_name == node and is_static(p)))


def role(node: Node) -> str:
    """``control-plane`` or ``worker``."""
    labels = node.metadata.labels or {}
    return "control-plane" if any(label in labels for label in CONTROL_PLANE) else "worker"


def os(node: Node) -> str:
    """``linux`` or ``windows``."""
    info = node.status.node_info if node.status else None
    return (info.operating_system if info else "") or "linux"


def zone(node: Node) -> str:
    """The node's zone, "" if it has none."""
    return (node.metadata.labels or {}).get(ZONE, "")


def node_addresses(node: Node) -> frozenset[str]:
    """IP addresses in the status of a Node, without loopback."""
    return normalize_addresses(a.address for a in (node.status.addresses if node.status else None) or ())


def normalize_addresses(texts: Iterable[str]) -> frozenset[str]:
    """The IP addresses among ``texts`` in canonical form, without loopback and host names."""
    found = set()
    for text in texts:
        try:
            address = ipaddress.ip_address(text.split("%")[0])
        except ValueError:
            continue
        if not address.is_loopback:
            found.add(str(getattr(address, "ipv4_mapped", None) or address))
    return frozenset(found)
