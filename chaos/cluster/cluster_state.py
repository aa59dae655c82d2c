"""Queries to a cluster for a run: its identity and version, nodes, pods, single facts, permissions."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from chaos.cluster.errors import decode_body, from_response, status_message
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.api_fact import (
    CONDITION,
    LABELS,
    NAMESPACE,
    OBJECT,
    TAINT,
    PseudoFact,
    condition_status,
    field,
    node_path,
    taint_value,
)
from chaos.core.api_path import resource_path
from chaos.core.cluster_view import ClusterView
from chaos.core.errors import NodefallError, Refused
from chaos.core.kube import Node, Pod, is_ready, last_manager
from chaos.core.labels import FIELD_MANAGER
from chaos.core.permission import Permission
from chaos.core.ports import KubeApi
from chaos.core.threads import SYSTEM_THREADS, Threads

if TYPE_CHECKING:
    from chaos.cluster.client import ApiClient

T = TypeVar("T")
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_MAX_THREADS = 8


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _Uid(msgspec.Struct):
    uid: str = ""


class _Namespace(msgspec.Struct):
    metadata: _Uid


def cluster_uid(api: KubeApi) -> str:
    """The uid of the namespace kube-system, which identifies a cluster. Raises NodefallError."""
    body = _get(api, "/api/v1/namespaces/kube-system")
    return _decode_as(body, _Namespace, "namespace kube-system").metadata.uid


def server_version(api: KubeApi) -> str:
    """A version such as ``v1.36.2``. Raises NodefallError."""
    return _decode_as(_get(api, "/version"), _Version, "/version").git_version


def server_is_loopback(api: ApiClient) -> bool:
    """True if every address of the API server is this machine's loopback, and no proxy is used."""
    parts = urlsplit(api.server)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return not api.uses_proxy and all(ipaddress.ip_address(str(address[4][0])).is_loopback for address in found)


def _get(api: KubeApi, path: str) -> bytes:
    response = api.request("GET", path)
    if response.status != 200:
        raise from_response(response, path)
    return response.body


def _decode_as(body: bytes, type_: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except DECODE_ERRORS as error:
        raise NodefallError(f"{what}: invalid response: {error}") from error


class _List(Struct):
    items: list[msgspec.Raw] = []


def cluster_view(kube: KubeApi, uid: str) -> ClusterView:
    """All nodes and pods. Raises NodefallError."""
    nodes = {node.metadata.name: node for node in list_nodes(kube)}
    return ClusterView(uid, nodes, tuple(_list_all(kube, "/api/v1/pods", Pod)))


def list_nodes(kube: KubeApi) -> list[Node]:
    """All nodes. Raises NodefallError."""
    return _list_all(kube, "/api/v1/nodes", Node)


def _list_all(kube: KubeApi, path: str, type_: type[T]) -> list[T]:
    response = kube.request("GET", path)
    if response.status != 200:
        raise Refused(
            f"GET {path}: the API server answered {response.status}",
            hint="grant the credentials of the kubeconfig list and watch on nodes and pods",
        )
    return [msgspec.json.decode(item, type=type_) for item in msgspec.json.decode(response.body, type=_List).items]


def get_objects(paths: Iterable[str], kube: KubeApi) -> dict[str, Any]:
    """API objects by path; None for objects that do not exist. Raises Refused."""
    found: dict[str, Any] = {}
    for path in dict.fromkeys(paths):
        response = kube.request("GET", path)
        if response.status not in (200, 404):
            raise Refused(f"GET {path}: the API server answered {response.status}")
        found[path] = msgspec.json.decode(response.body) if response.status == 200 else None
    return found


class UnknownFact(NodefallError):
    """A fact that cannot be read, with the reason."""


class ApiFacts:
    """Thread-safe and stateless."""

    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube

    @staticmethod
    def supports(fact: str) -> bool:
        names = (PseudoFact.NODE_READY, PseudoFact.OWN_CORDON)
        return fact in names or fact.startswith((NAMESPACE, f"{OBJECT}/", TAINT, CONDITION, LABELS))

    def read(self, node: str, fact: str) -> Any:
        """Raises UnknownFact."""
        if fact == PseudoFact.NODE_READY:
            return self._ready(node)
        if fact == PseudoFact.OWN_CORDON:
            return self._own_cordon(node)
        if fact.startswith(NAMESPACE):
            path = resource_path("v1", "namespaces", name=fact.removeprefix(NAMESPACE))
            return "gone" if self._object(path, msgspec.Raw) is None else "there"
        if fact.startswith((TAINT, CONDITION, LABELS)):
            return _field_of_node(self._object(node_path(node), Any), fact)
        path, _, pointer = fact.removeprefix(OBJECT).partition("#")
        return field(self._object(path, Any), pointer)

    def boot_id(self, node: str) -> Any:
        """Boot ID that the kubelet last reported. Raises UnknownFact."""
        return field(self._object(node_path(node), Any), "/status/nodeInfo/bootID")

    def _ready(self, node: str) -> bool:
        found = self._object(node_path(node), Node)
        if found is None:
            raise UnknownFact(f"node {node}: the API server answered 404")
        return is_ready(found)

    def _own_cordon(self, node: str) -> bool:
        found = self._object(node_path(node), Node)
        is_cordoned = bool(found and found.spec and found.spec.unschedulable)
        return is_cordoned and last_manager(found, "unschedulable") in ("", FIELD_MANAGER)

    def _object(self, path: str, type_: Any) -> Any:
        """The object at ``path``, or None. Raises UnknownFact."""
        response = self._kube.request("GET", path)
        if response.status not in (200, 404):
            raise UnknownFact(f"{path}: the API server answered {response.status}")
        try:
            return None if response.status == 404 else msgspec.json.decode(response.body, type=type_)
        except DECODE_ERRORS as error:
            raise UnknownFact(f"{path}: {error}") from error


def _field_of_node(node: Any, fact: str) -> Any:
    if fact.startswith(TAINT):
        return taint_value(node, fact.removeprefix(TAINT))
    if fact.startswith(CONDITION):
        return condition_status(node, fact.removeprefix(CONDITION))
    labels = field(node, "/metadata/labels") or {}
    return {key: labels[key] for key in fact.removeprefix(LABELS).split(",") if key in labels}


def missing_permissions(
    kube: KubeApi, permissions: Sequence[Permission], threads: Threads = SYSTEM_THREADS
) -> list[Permission]:
    """The permissions that a SelfSubjectAccessReview denies. Raises NodefallError if a review fails."""
    with threads.pool(_MAX_THREADS) as pool:
        reviews = list(pool.map(lambda permission: _is_allowed(kube, permission), permissions))
    return [permission for permission, allowed in zip(permissions, reviews, strict=True) if not allowed]


def refuse_missing(kube: KubeApi, permissions: Sequence[Permission], threads: Threads = SYSTEM_THREADS) -> None:
    """Raises Refused, naming the missing permissions."""
    if missing := missing_permissions(kube, permissions, threads):
        raise Refused(
            f"the credentials of the kubeconfig may not {'; '.join(str(permission) for permission in missing)}",
            hint="apply the roles that nodefall rbac EXPERIMENT prints",
        )


def _is_allowed(kube: KubeApi, permission: Permission) -> bool:
    body: dict[str, Any] = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body["spec"] = _review_spec(permission)
    response = kube.request("POST", _REVIEWS, body=body)
    if response.status >= 300:
        raise NodefallError(f"permissions cannot be reviewed: {response.status}: {status_message(response)}")
    return field(decode_body(response), "/status/allowed") is True


def _review_spec(permission: Permission) -> dict[str, dict[str, str]]:
    if permission.is_non_resource:
        return {"nonResourceAttributes": {"verb": permission.verb, "path": permission.resource}}
    resource, _, subresource = permission.resource.partition("/")
    attributes = {"verb": permission.verb, "group": permission.group, "resource": resource, "subresource": subresource}
    attributes |= {"namespace": permission.namespace, "name": permission.name}
    return {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
