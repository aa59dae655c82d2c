"""The resources that the API server has, and their places in its URLs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


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


def discovery(group_version: str) -> dict[str, Any] | None:
    """The APIResourceList of a group's version, None if there is no such group."""
    found = [resource for (known, _), resource in RESOURCES.items() if known == group_version]
    entries: list[dict[str, Any]] = [
        {"name": r.plural, "singularName": r.kind.lower(), "namespaced": r.namespaced, "kind": r.kind, "verbs": VERBS}
        for r in found
    ]
    if group_version == REVIEW[0]:
        kind = "SelfSubjectAccessReview"
        entries = [{"name": REVIEW[1], "singularName": "", "namespaced": False, "kind": kind, "verbs": ["create"]}]
    if group_version == "v1":  # kubectl drain looks for it
        eviction = {"name": "/".join(EVICTION), "singularName": "", "namespaced": True, "kind": "Eviction"}
        entries.append({**eviction, "group": "policy", "version": "v1", "verbs": ["create"]})
    if not entries:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def groups() -> dict[str, Any]:
    """The APIGroupList."""
    names = sorted({group_version for group_version, _ in [*RESOURCES, REVIEW] if "/" in group_version})
    versions = [{"groupVersion": name, "version": name.rpartition("/")[2]} for name in names]
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {"name": name.partition("/")[0], "versions": [version], "preferredVersion": version}
            for name, version in zip(names, versions, strict=True)
        ],
    }
