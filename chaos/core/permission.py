"""Permissions on a cluster, in the terms of RBAC, and the roles that grant them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from chaos.core.api_fact import OBJECT, node_path
from chaos.core.api_path import refuse_unsafe_path
from chaos.core.command import ApiCommand, KubeCommand, PodsCommand, PodVerb

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?(?:/(?P<sub>[^/?]+))?(?:\?.*)?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get"}


class Permission(Struct, frozen=True, order=True):
    """One verb on one resource; an empty namespace means all, an empty name any.

    ``resource`` includes the subresource, as pods/eviction. If it begins with a slash it is a non-resource URL, as
    /metrics.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    @property
    def is_non_resource(self) -> bool:
        return self.resource.startswith("/")

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {resource}{name}" + (f" in namespace {self.namespace}" if self.namespace else "")

    def covers(self, other: Permission) -> bool:
        """Whether this permission includes ``other``."""
        same = (self.group, self.resource, self.verb) == (other.group, other.resource, other.verb)
        return same and self.namespace in ("", other.namespace) and self.name in ("", other.name)


PATCH_NODES = (Permission("", "nodes", "patch"),)  # to read Nodes is a permission of every run


def permission_for_request(method: str, path: str) -> Permission:
    """Permission for a request to an API path.

    Raises ValueError for a path without a resource, Refused for one with a segment that is no plain name.

    k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
    """
    found = _PATH.fullmatch(path)
    if found is None:
        raise ValueError(f"{path} is not the path of an API resource")
    refuse_unsafe_path(path)
    resource = found["resource"] + (f"/{found['sub']}" if found["sub"] else "")
    verb = _VERBS.get(method, "delete")
    if not found["name"]:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return Permission(found["group"] or "", resource, verb, found["namespace"] or "", found["name"] or "")


_POD_REQUESTS = {
    PodVerb.EVICT: ("pods/eviction", "create"),
    PodVerb.DELETE: ("pods", "delete"),
    PodVerb.REMOVE_FINALIZERS: ("pods", "patch"),
    PodVerb.MARK_DISRUPTION: ("pods/status", "patch"),
}


def permissions_for_command(command: ApiCommand) -> Iterator[Permission]:
    """Permissions for the requests of a command. Raises ValueError and Refused for its path."""
    if isinstance(command, KubeCommand):
        yield permission_for_request(command.method, command.path)
    elif isinstance(command, PodsCommand):
        inside = command.pods.namespace
        yield Permission("", "pods", "list", inside)
        yield Permission("", *_POD_REQUESTS[command.verb], inside)
        if command.wait:
            yield Permission("", "pods", "get", inside)
        if command.rules:
            yield Permission("apps", "daemonsets", "get", inside)
    else:
        yield from (permission_for_request(method, node_path(command.node)) for method in ("GET", "PATCH"))


def permission_for_fact(fact: str) -> Permission | None:
    """Permission to read an object of the API for a fact; None for a fact about anything else. Raises as above."""
    is_object = fact.startswith(f"{OBJECT}/")
    return permission_for_request("GET", fact.removeprefix(OBJECT).partition("#")[0]) if is_object else None


def permissions_on(resource: str, *verbs: str, group: str = "", namespace: str = "") -> tuple[Permission, ...]:
    """One permission per verb."""
    return tuple(Permission(group, resource, verb, namespace) for verb in verbs)


def policy_rules(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """Rules of one RBAC role; permissions that differ only in the resource share a rule."""
    permissions = list(permissions)
    paths = [
        {"nonResourceURLs": [permission.resource], "verbs": [permission.verb]}
        for permission in permissions
        if permission.is_non_resource
    ]
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for permission in (permission for permission in permissions if not permission.is_non_resource):
        verbs.setdefault((permission.group, permission.name, permission.resource), []).append(permission.verb)
    merged: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, name, resource), group_verbs in verbs.items():
        merged.setdefault((group, name, tuple(group_verbs)), []).append(resource)
    by_resource = [
        {"apiGroups": [group], "resources": resources}
        | ({"resourceNames": [name]} if name else {})
        | {"verbs": [*group_verbs]}
        for (group, name, group_verbs), resources in merged.items()
    ]
    return by_resource + paths


def role_manifests(permissions: Iterable[Permission], name: str, subject: dict[str, str]) -> list[dict[str, Any]]:
    """Manifests of a ClusterRole and one Role per namespace, each with a binding to ``subject``."""
    by_namespace: dict[str, list[Permission]] = {}
    for permission in sorted(permissions):
        by_namespace.setdefault(permission.namespace, []).append(permission)
    return [
        doc
        for namespace, in_namespace in sorted(by_namespace.items())
        for doc in _role_and_binding(namespace, in_namespace, name, subject)
    ]


def _role_and_binding(
    namespace: str, permissions: list[Permission], name: str, subject: dict[str, str]
) -> list[dict[str, Any]]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    head = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    return [
        head | {"kind": kind, "metadata": metadata, "rules": policy_rules(permissions)},
        head | {"kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": [subject]},
    ]
