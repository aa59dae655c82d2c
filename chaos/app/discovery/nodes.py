"""Nodes as ``nodefall init`` reads them, and which distribution of Kubernetes they show: a table of evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import field

from chaos.core.kube.meta import Base, condition
from chaos.core.kube.node import NodeInfo, NodeSpec, NodeStatus
from chaos.core.labels import CONTROL_PLANE_LABELS, ZONE_LABEL
from chaos.core.text import count_of

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
        f"{count_of(len(nodes), 'node')}: {', '.join(count_of(number, role) for role, number in sorted(roles.items()))}"
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


KIND, EKS, GKE, AKS, OPENSHIFT = "kind", "EKS", "GKE", "AKS", "OpenShift"
K3S, RKE2, TALOS, KUBEADM, UNKNOWN = "k3s", "RKE2", "Talos", "kubeadm", "unknown"
MANAGED = frozenset({EKS, GKE, AKS})  # their control plane has no Nodes
KUBEADM_CONFIG = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
_LABEL, _ANNOTATION, _VERSION, _IMAGE, _PROVIDER = "label", "annotation", "kubelet version", "OS image", "provider ID"


@dataclass(frozen=True, slots=True)
class Evidence:
    """``pattern`` in a ``place`` of a Node shows ``distribution``; ``source`` documents it."""

    distribution: str
    place: str
    pattern: str
    source: str


@dataclass(frozen=True, slots=True)
class Found:
    """The distribution of a cluster; ``shown_by`` and ``source`` are "" where it is unknown."""

    name: str
    shown_by: str = ""
    source: str = ""


# The first that matches a Node counts: kind's nodes are also kubeadm's, and those of others may be in any cloud.
TABLE = (
    Evidence(KIND, _PROVIDER, r"^kind://", "kind: pkg/cluster/internal/kubeadm/config.go"),
    Evidence(EKS, _LABEL, r"^eks\.amazonaws\.com/", "docs.aws.amazon.com/eks: managed node groups"),
    Evidence(EKS, _VERSION, r"-eks-[0-9a-f]", "docs.aws.amazon.com/eks: Amazon EKS optimized AMIs"),
    Evidence(GKE, _LABEL, r"^cloud\.google\.com/gke-nodepool$", "cloud.google.com/kubernetes-engine: about node pools"),
    Evidence(GKE, _VERSION, r"-gke\.[0-9]", "cloud.google.com/kubernetes-engine: GKE versioning"),
    Evidence(AKS, _LABEL, r"^kubernetes\.azure\.com/cluster$", "learn.microsoft.com/azure/aks/use-labels"),
    Evidence(OPENSHIFT, _LABEL, r"^node\.openshift\.io/os_id$", "openshift/machine-config-operator: templates"),
    Evidence(OPENSHIFT, _IMAGE, r"^Red Hat Enterprise Linux CoreOS", "openshift/machine-config-operator: OS updates"),
    Evidence(K3S, _VERSION, r"\+k3s[0-9]", "docs.k3s.io: release notes"),
    Evidence(RKE2, _VERSION, r"\+rke2r[0-9]", "docs.rke2.io: release notes"),
    Evidence(TALOS, _IMAGE, r"^Talos ", "docs.siderolabs.com/talos: node labels and status"),
    Evidence(
        KUBEADM, _ANNOTATION, r"^kubeadm\.alpha\.kubernetes\.io/cri-socket$",
        "kubernetes.io/docs/reference/labels-annotations-taints",
    ),
)  # fmt: skip
_CONFIG_SOURCE = "kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details"


def distribution_of_node(node: ListedNode) -> Found:
    """What a Node shows by itself."""
    for evidence in TABLE:
        for text in _texts(node, evidence.place):
            if re.search(evidence.pattern, text):
                return Found(evidence.distribution, f"{evidence.place} {text} of {node.name}", evidence.source)
    return Found(UNKNOWN)


def distribution_of(nodes: Iterable[ListedNode], *, has_kubeadm_config: bool) -> Found:
    """That of most Nodes that show one; kubeadm's ConfigMap decides where none does.

    kubeadm of v1.34 and later may leave no annotation on a Node (feature gate NodeLocalCRISocket).
    """
    found = [each for node in nodes if (each := distribution_of_node(node)).name != UNKNOWN]
    if found:
        (name, _), *_ = Counter(each.name for each in found).most_common(1)
        return next(each for each in found if each.name == name)
    if has_kubeadm_config:
        return Found(KUBEADM, "ConfigMap kubeadm-config in kube-system", _CONFIG_SOURCE)
    return Found(UNKNOWN)


def _texts(node: ListedNode, place: str) -> Iterable[str]:
    if place == _LABEL:
        return node.labels
    if place == _ANNOTATION:
        return node.metadata.annotations or ()
    return {_VERSION: [node.info.kubelet_version], _IMAGE: [node.info.os_image], _PROVIDER: [node.provider_id]}[place]
