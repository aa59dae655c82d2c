"""Resources of the API server, and the parts of its URLs."""

from __future__ import annotations

from collections.abc import Mapping
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
