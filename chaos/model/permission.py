"""What somebody must be allowed to do to a cluster, as rules of RBAC name it."""

from __future__ import annotations

import re

from msgspec import Struct

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?(?:/(?P<sub>[^/?]+))?(?:\?.*)?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get"}


class Permission(Struct, frozen=True, order=True):
    """``resource`` with its subresource, as pods/eviction; an empty namespace is everywhere, an empty name any.

    One that begins with a slash is the path of a URL that names no resource, as /metrics.
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
        """Whether it allows what ``other`` names."""
        same = (self.group, self.resource, self.verb) == (other.group, other.resource, other.verb)
        return same and self.namespace in ("", other.namespace) and self.name in ("", other.name)


PATCH_NODES = (Permission("", "nodes", "patch"),)  # that they are read is a right of every run


def permission_for_request(method: str, path: str) -> Permission:
    """The right to a request for an API path. Raises ValueError.

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
    """One for each verb."""
    return tuple(Permission(group, resource, verb, namespace) for verb in verbs)
