"""A cluster as planning sees it: nodes, pods and their roles."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from chaos.core.kube import Node, Pod, is_ready, is_static
from chaos.core.labels import CONTROL_PLANE_LABELS, ETCD_LABEL, ZONE_LABEL

# Static pods of the control plane; the kubelet appends the node's name. Others, such as a proxy, run on workers too.
_CONTROL_PLANE_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True)  # no slots: of the cached property
class ClusterView:
    """Nodes by name and all pods, as listed at one moment. ``uid`` is the UID of the namespace kube-system."""

    uid: str
    nodes: Mapping[str, Node]
    pods: tuple[Pod, ...] = field(default=())

    def ready_nodes(self) -> list[str]:
        """Names of the nodes that are Ready, sorted."""
        return sorted(name for name, node in self.nodes.items() if is_ready(node))

    def ready_workers(self) -> list[str]:
        """Names of the workers that are Ready, sorted."""
        return [name for name in self.ready_nodes() if self.role(name) == "worker"]

    def role(self, node: str) -> str:
        """``control-plane`` or ``worker``: by the labels of the Node, and by the static pods that run on it."""
        labels = self.nodes[node].metadata.labels or {}
        if any(label in labels for label in CONTROL_PLANE_LABELS):
            return "control-plane"
        return "control-plane" if any(self._runs(node, name) for name in _CONTROL_PLANE_PODS) else "worker"

    def etcd_members(self) -> list[str]:
        """Names of the nodes that run etcd, sorted: by label (k3s, RKE2) or static pod, else the control planes."""
        members = [name for name, node in self.nodes.items() if ETCD_LABEL in (node.metadata.labels or {})]
        members += [name for name in self.nodes if self._runs(name, "etcd")]
        return sorted({*members} or {name for name in self.nodes if self.role(name) == "control-plane"})

    def _runs(self, node: str, component: str) -> bool:
        """Whether a component of the control plane runs on a node as a static pod."""
        return f"{component}-{node}" in self._static_pods.get(node, ())

    def static_pods(self, node: str) -> tuple[str, ...]:
        """Names of the static pods on a node, sorted."""
        return tuple(sorted(self._static_pods.get(node, ())))

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """The pods that are bound to a node."""
        return tuple(self._bound_pods.get(node, ()))

    @cached_property
    def _bound_pods(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.pods:
            if pod.spec and pod.spec.node_name:
                found.setdefault(pod.spec.node_name, []).append(pod)
        return found

    @cached_property
    def _static_pods(self) -> dict[str, set[str]]:
        return {node: {pod.metadata.name for pod in pods if is_static(pod)} for node, pods in self._bound_pods.items()}


def zone(node: Node) -> str:
    """The node's zone, "" if it has none."""
    return (node.metadata.labels or {}).get(ZONE_LABEL, "")


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
