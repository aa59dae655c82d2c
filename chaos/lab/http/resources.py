"""Resources of the API server, and the parts of its URLs.

Discovery of groups and resources, unaggregated and aggregated.
Types: k8s.io/apimachinery/pkg/apis/meta/v1 APIResourceList and k8s.io/api/apidiscovery/v2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource; ``group_version`` as in apiVersion."""

    plural: str
    kind: str
    group_version: str = "v1"
    namespaced: bool = True
    has_status: bool = True  # whether it has the subresource status
    short_name: str = ""  # for kubectl
    in_all: bool = False  # whether it belongs to kubectl's category "all"
    conditional: bool = False  # whether PUT needs a resourceVersion: not AllowUnconditionalUpdate

    @property
    def group(self) -> str:
        return self.group_version.rpartition("/")[0]

    @property
    def qualified_name(self) -> str:
        """Name in error messages: ``deployments.apps``."""
        return self.plural + (f".{self.group}" if self.group else "")

    def show(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Stored object with kind and apiVersion, as clients see it."""
        return {"kind": self.kind, "apiVersion": self.group_version, **obj}


_STORAGE = "storage.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"
RESOURCES = {
    (resource.group_version, resource.plural): resource
    for resource in (
        Resource("nodes", "Node", namespaced=False, short_name="no"),
        Resource("namespaces", "Namespace", namespaced=False, short_name="ns"),
        Resource("pods", "Pod", short_name="po", in_all=True),
        Resource("events", "Event", has_status=False, short_name="ev"),
        Resource("configmaps", "ConfigMap", has_status=False, short_name="cm"),
        Resource("secrets", "Secret", has_status=False),
        Resource("services", "Service", short_name="svc", in_all=True),
        Resource("serviceaccounts", "ServiceAccount", has_status=False, short_name="sa"),
        Resource("persistentvolumeclaims", "PersistentVolumeClaim", short_name="pvc"),
        Resource("persistentvolumes", "PersistentVolume", namespaced=False, short_name="pv"),
        Resource("volumeattachments", "VolumeAttachment", _STORAGE, namespaced=False, conditional=True),
        Resource("storageclasses", "StorageClass", _STORAGE, namespaced=False, has_status=False, short_name="sc"),
        Resource("csidrivers", "CSIDriver", _STORAGE, namespaced=False, has_status=False),
        Resource("endpointslices", "EndpointSlice", "discovery.k8s.io/v1", has_status=False),
        Resource("deployments", "Deployment", "apps/v1", short_name="deploy", in_all=True),
        Resource("statefulsets", "StatefulSet", "apps/v1", short_name="sts", in_all=True),
        Resource("daemonsets", "DaemonSet", "apps/v1", short_name="ds", in_all=True),
        Resource("replicasets", "ReplicaSet", "apps/v1", short_name="rs", in_all=True),
        Resource("controllerrevisions", "ControllerRevision", "apps/v1", has_status=False),
        Resource("jobs", "Job", "batch/v1", in_all=True),
        Resource("cronjobs", "CronJob", "batch/v1", short_name="cj", in_all=True),
        Resource("networkpolicies", "NetworkPolicy", "networking.k8s.io/v1", has_status=False, short_name="netpol"),
        Resource("roles", "Role", _RBAC, has_status=False),
        Resource("rolebindings", "RoleBinding", _RBAC, has_status=False),
        Resource("clusterroles", "ClusterRole", _RBAC, namespaced=False, has_status=False),
        Resource("clusterrolebindings", "ClusterRoleBinding", _RBAC, namespaced=False, has_status=False),
        Resource("leases", "Lease", "coordination.k8s.io/v1", has_status=False, conditional=True),
        Resource("poddisruptionbudgets", "PodDisruptionBudget", "policy/v1", short_name="pdb", conditional=True),
        Resource(
            "priorityclasses",
            "PriorityClass",
            "scheduling.k8s.io/v1",
            namespaced=False,
            has_status=False,
            short_name="pc",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource; ``kind`` and ``group_version`` of its request body."""

    kind: str
    group_version: str
    verbs: tuple[str, ...]


_SCALE = Subresource("Scale", "autoscaling/v1", ("get", "patch", "update"))
# By plural and name; besides these, "status" of the resources that have it.
SUBRESOURCES = {
    ("pods", "eviction"): Subresource("Eviction", "policy/v1", ("create",)),
    ("services", "proxy"): Subresource("ServiceProxyOptions", "v1", ("get",)),
    ("pods", "binding"): Subresource("Binding", "v1", ("create",)),
    ("pods", "exec"): Subresource("PodExecOptions", "v1", ("create", "get")),
    **{(plural, "scale"): _SCALE for plural in ("deployments", "replicasets", "statefulsets")},
}
_UNSIMULATED_POD_SUBRESOURCES = ("attach", "ephemeralcontainers", "log", "portforward", "proxy", "resize")
UNSIMULATED_SUBRESOURCES = {
    *(("pods", name) for name in _UNSIMULATED_POD_SUBRESOURCES),
    ("namespaces", "finalize"),
    ("nodes", "proxy"),
    ("serviceaccounts", "token"),
}
# Reviews of a user's own identity and permissions: kind by group version and plural.
REVIEWS = {
    ("authentication.k8s.io/v1", "selfsubjectreviews"): "SelfSubjectReview",
    ("authorization.k8s.io/v1", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    ("authorization.k8s.io/v1", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
}


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """Parts of a URL; an empty ``name`` means the collection. As request.RequestInfo."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def group_version_of(parts: Mapping[str, str]) -> str:
    """Group version of the matched parts of a URL."""
    group = parts.get("group")
    return f"{group}/{parts['version']}" if group else parts["version"]


def parse_request_info(group_version: str, path: str) -> RequestInfo | None:
    """Parse ``path``, the part of the URL after the group version; None if the URL is not served."""
    parts = path.strip("/").split("/")
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and (group_version, parts[2]) in RESOURCES:
        namespace, parts = parts[1], parts[2:]
    resource = RESOURCES.get((group_version, parts[0]))
    if resource is not None and resource.plural == "services" and parts[2:3] == ["proxy"]:
        parts = parts[:3]  # what follows is the Service's own path
    if resource is None or len(parts) > 3 or (namespace and not resource.namespaced):
        return None
    if resource.namespaced and len(parts) > 1 and not namespace:
        return None
    return RequestInfo(resource, namespace, *parts[1:])


AGGREGATED_CONTENT_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def group_versions() -> list[str]:
    """Group versions of all groups, the core group first."""
    return sorted({group_version for group_version, _ in [*RESOURCES, *REVIEWS]}, key=lambda name: ("/" in name, name))


def resource_list(group_version: str) -> dict[str, Any] | None:
    """APIResourceList of a group version; None if the group version is unknown."""
    entries = [entry for resource in _resources(group_version) for entry in _entries(resource)]
    entries += [_entry(name, "", False, kind, ("create",)) for name, kind in _reviews(group_version)]
    if not entries:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def group_list() -> dict[str, Any]:
    """APIGroupList of all groups but the core group."""
    groups = [_group(name) for name in group_versions() if "/" in name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(name: str) -> dict[str, Any] | None:
    """APIGroup by name; None if the group is unknown."""
    groups = [_group(known) for known in group_versions() if known.partition("/")[0] == name and "/" in known]
    return {"kind": "APIGroup", "apiVersion": "v1", **groups[0]} if groups else None


def aggregated_discovery(core: bool) -> dict[str, Any]:
    """APIGroupDiscoveryList of the core group, or of all other groups."""
    items = [
        {
            "metadata": {"name": name.rpartition("/")[0], "creationTimestamp": None},
            "versions": [
                {
                    "version": name.rpartition("/")[2],
                    "freshness": "Current",
                    "resources": list(_resource_discovery(name)),
                }
            ],
        }
        for name in group_versions()
        if ("/" in name) != core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _resources(group_version: str) -> list[Resource]:
    result = [resource for (known, _), resource in RESOURCES.items() if known == group_version]
    return sorted(result, key=lambda resource: resource.plural)


def _reviews(group_version: str) -> list[tuple[str, str]]:
    return [(name, kind) for (known, name), kind in REVIEWS.items() if known == group_version]


def _subresources(resource: Resource) -> dict[str, Subresource]:
    result = {name: sub for (plural, name), sub in SUBRESOURCES.items() if plural == resource.plural}
    if resource.has_status:
        result["status"] = Subresource(resource.kind, resource.group_version, ("get", "patch", "update"))
    return result


def _group(group_version: str) -> dict[str, Any]:
    version = {"groupVersion": group_version, "version": group_version.rpartition("/")[2]}
    return {"name": group_version.partition("/")[0], "versions": [version], "preferredVersion": version}


def _entry(name: str, singular: str, namespaced: bool, kind: str, verbs: tuple[str, ...]) -> dict[str, Any]:
    return {"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": list(verbs)}


def _entries(resource: Resource) -> Iterator[dict[str, Any]]:
    """APIResources of a resource and its subresources; group and version only where they differ from the list's."""
    names = {"shortNames": [resource.short_name]} if resource.short_name else {}
    categories = {"categories": ["all"]} if resource.in_all else {}
    entry = _entry(resource.plural, resource.kind.lower(), resource.namespaced, resource.kind, _VERBS)
    yield {**entry, **names, **categories}
    for name, sub in sorted(_subresources(resource).items()):
        group, _, version = sub.group_version.rpartition("/")
        other = {} if sub.group_version == resource.group_version else {"group": group, "version": version}
        yield {**_entry(f"{resource.plural}/{name}", "", resource.namespaced, sub.kind, sub.verbs), **other}


def _resource_discovery(group_version: str) -> Iterator[dict[str, Any]]:
    for resource in _resources(group_version):
        subresources = [
            {"subresource": name, "responseKind": _gvk(sub.group_version, sub.kind), "verbs": list(sub.verbs)}
            for name, sub in sorted(_subresources(resource).items())
        ]
        yield {
            "resource": resource.plural,
            "responseKind": _gvk(group_version, resource.kind),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": resource.kind.lower(),
            "verbs": list(_VERBS),
            **({"shortNames": [resource.short_name]} if resource.short_name else {}),
            **({"categories": ["all"]} if resource.in_all else {}),
            **({"subresources": subresources} if subresources else {}),
        }
    for name, kind in _reviews(group_version):
        response = {"responseKind": _gvk(group_version, kind)}
        yield {"resource": name, "scope": "Cluster", "singularResource": "", "verbs": ["create"], **response}


def _gvk(group_version: str, kind: str) -> dict[str, str]:
    group, _, version = group_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}
