"""Permissions on a cluster, in the terms of RBAC."""

from __future__ import annotations

import re

from msgspec import Struct

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
    """Permission for a request to an API path. Raises ValueError for a path without a resource.

    k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
    """
    found = _PATH.fullmatch(path)
    if found is None:
        raise ValueError(f"{path} is no path of an API resource")
    resource = found["resource"] + (f"/{found['sub']}" if found["sub"] else "")
    verb = _VERBS.get(method, "delete")
    if not found["name"]:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return Permission(found["group"] or "", resource, verb, found["namespace"] or "", found["name"] or "")


def permissions_on(resource: str, *verbs: str, group: str = "", namespace: str = "") -> tuple[Permission, ...]:
    """One permission per verb."""
    return tuple(Permission(group, resource, verb, namespace) for verb in verbs)
