"""Nodes as ``nodefall init`` reads them: with all labels and annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import field

from chaos.core.kube.meta import Base, condition
from chaos.core.kube.node import NodeInfo, NodeSpec, NodeStatus
from chaos.core.labels import CONTROL_PLANE_LABELS, ZONE_LABEL

# Labels that name the pool of a node, of EKS, GKE, AKS and Karpenter.
_POOLS = (
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)


class ListedMetadata(Base):
    name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class ListedNode(Base):
    """A Node of a list; what is missing has the value of an empty field."""

    metadata: ListedMetadata = field(default_factory=ListedMetadata)
    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def info(self) -> NodeInfo:
        return (self.status and self.status.node_info) or NodeInfo()

    @property
    def provider_id(self) -> str:
        return (self.spec and self.spec.provider_id) or ""

    @property
    def system(self) -> str:
        """``linux`` or ``windows``."""
        return "windows" if self.info.operating_system == "windows" else "linux"

    @property
    def is_control_plane(self) -> bool:
        """By its labels alone; a run considers static pods, too."""
        return any(label in self.labels for label in CONTROL_PLANE_LABELS)

    @property
    def is_ready(self) -> bool:
        ready = condition(self.status.conditions if self.status else None, "Ready")
        return ready is not None and ready.status == "True"

    @property
    def address(self) -> str:
        """The address that nodefall uses without one in the inventory: the first InternalIP, else ExternalIP."""
        by_type = {each.type: each.address for each in reversed((self.status and self.status.addresses) or ())}
        return by_type.get("InternalIP") or by_type.get("ExternalIP") or by_type.get("Hostname") or ""

    @property
    def has_two_families(self) -> bool:
        """Whether its InternalIPs are of both IPv4 and IPv6."""
        addresses = [
            each.address for each in (self.status and self.status.addresses) or () if each.type == "InternalIP"
        ]
        return len({":" in address for address in addresses}) == 2


def summary(nodes: Iterable[ListedNode]) -> list[str]:
    """Lines for people: roles, systems, zones and pools, with their numbers."""
    nodes = list(nodes)
    roles = Counter("control plane" if node.is_control_plane else "worker" for node in nodes)
    windows = sum(node.system == "windows" for node in nodes)
    lines = [
        f"{_count(len(nodes), 'node')}: {', '.join(_count(number, role) for role, number in sorted(roles.items()))}"
    ]
    lines[0] += f", {windows} with Windows" if windows else ""
    pools = Counter(next((node.labels[key] for key in _POOLS if key in node.labels), "") for node in nodes)
    for what, found in (("zones", Counter(node.labels.get(ZONE_LABEL, "") for node in nodes)), ("pools", pools)):
        del found[""]
        if found:
            lines.append(f"{what}: " + ", ".join(f"{name} ({number})" for name, number in sorted(found.items())))
    if any(node.has_two_families for node in nodes):
        lines.append(
            "dual-stack: the first InternalIP of a Node is used, which is of the family that the cluster prefers"
        )
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
