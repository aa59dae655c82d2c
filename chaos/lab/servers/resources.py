"""The resources that the API server has, and their places in its URLs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Resource:
    """``group_version`` as in apiVersion."""

    plural: str
    kind: str
    group_version: str = "v1"
    namespaced: bool = True
    status: bool = True  # has the subresource status

    @property
    def group(self) -> str:
        return self.group_version.rpartition("/")[0]

    def show(self, obj: dict[str, Any]) -> dict[str, Any]:
        """A stored object as a client sees it."""
        return {"kind": self.kind, "apiVersion": self.group_version, **obj}


RESOURCES = {
    (resource.group_version, resource.plural): resource
    for resource in (
        Resource("nodes", "Node", namespaced=False),
        Resource("namespaces", "Namespace", namespaced=False),
        Resource("pods", "Pod"),
        Resource("events", "Event", status=False),
        Resource("configmaps", "ConfigMap", status=False),
        Resource("services", "Service"),
        Resource("serviceaccounts", "ServiceAccount", status=False),
        Resource("persistentvolumeclaims", "PersistentVolumeClaim"),
        Resource("persistentvolumes", "PersistentVolume", namespaced=False),
        Resource("volumeattachments", "VolumeAttachment", "storage.k8s.io/v1", namespaced=False),
        Resource("endpointslices", "EndpointSlice", "discovery.k8s.io/v1", status=False),
        Resource("deployments", "Deployment", "apps/v1"),
        Resource("statefulsets", "StatefulSet", "apps/v1"),
        Resource("daemonsets", "DaemonSet", "apps/v1"),
        Resource("replicasets", "ReplicaSet", "apps/v1"),
        Resource("jobs", "Job", "batch/v1"),
        Resource("leases", "Lease", "coordination.k8s.io/v1", status=False),
        Resource("poddisruptionbudgets", "PodDisruptionBudget", "policy/v1"),
        Resource("priorityclasses", "PriorityClass", "scheduling.k8s.io/v1", namespaced=False, status=False),
    )
}
EVICTION = ("pods", "eviction")
REVIEW = ("authorization.k8s.io/v1", "selfsubjectaccessreviews")


@dataclass(frozen=True, slots=True)
class Place:
    """What a URL names; an empty ``name`` is the collection."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def locate(group_version: str, path: str) -> Place | None:
    """The place of ``path``, the part of the URL after the group's version; None if there is none."""
    parts = path.strip("/").split("/")
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and (group_version, parts[2]) in RESOURCES:
        namespace, parts = parts[1], parts[2:]
    resource = RESOURCES.get((group_version, parts[0]))
    if resource is None or len(parts) > 3 or (namespace and not resource.namespaced):
        return None
    if resource.namespaced and len(parts) > 1 and not namespace:
        return None
    return Place(resource, namespace, *parts[1:])
