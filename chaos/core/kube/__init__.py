"""Kubernetes objects. They contain only the fields that nodefall inspects, so it records no others.

Every field may be missing or null, as real API servers send both (a bookmark has ``containers: null``).
Times stay RFC 3339 strings: they are evidence, with a resolution of one second, not what bounds are judged on.
``RESOURCES`` are the resources that are watched and recorded.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

# ruff: noqa: F403, F405 - every name of these modules is exported
from chaos.core.kube.meta import *
from chaos.core.kube.node import *
from chaos.core.kube.pod import *
from chaos.core.kube.workload import *

KubeObject = (
    Node
    | Pod
    | Lease
    | Event
    | Workload
    | PodDisruptionBudget
    | EndpointSlice
    | VolumeAttachment
    | PersistentVolumeClaim
    | Job
)


class Resource(Struct, frozen=True):
    """API path and type of a plural resource."""

    plural: str
    prefix: str  # "/api/v1" or "/apis/GROUP/VERSION"
    type: type[Any]

    @property
    def path(self) -> str:
        """Path of the collection in all namespaces."""
        return f"{self.prefix}/{self.plural}"


RESOURCES: dict[str, Resource] = {
    r.plural: r
    for r in (
        Resource("nodes", "/api/v1", Node),
        Resource("pods", "/api/v1", Pod),
        Resource("events", "/api/v1", Event),
        Resource("leases", "/apis/coordination.k8s.io/v1", Lease),
        Resource("deployments", "/apis/apps/v1", Workload),
        Resource("statefulsets", "/apis/apps/v1", Workload),
        Resource("daemonsets", "/apis/apps/v1", Workload),
        Resource("replicasets", "/apis/apps/v1", Workload),
        Resource("jobs", "/apis/batch/v1", Job),
        Resource("poddisruptionbudgets", "/apis/policy/v1", PodDisruptionBudget),
        Resource("endpointslices", "/apis/discovery.k8s.io/v1", EndpointSlice),
        Resource("volumeattachments", "/apis/storage.k8s.io/v1", VolumeAttachment),
        Resource("persistentvolumeclaims", "/api/v1", PersistentVolumeClaim),
    )
}
