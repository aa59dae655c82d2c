"""Snapshot of a cluster before a run: nodes, pods and single objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from chaos.core.cluster_view import ClusterView
from chaos.core.errors import Refused
from chaos.core.kube import Node, Pod
from chaos.core.ports import KubeApi

T = TypeVar("T")


class _List(Struct):
    items: list[msgspec.Raw] = []


def cluster_view(kube: KubeApi, uid: str) -> ClusterView:
    """All nodes and pods. Raises NodefallError."""
    nodes = {node.metadata.name: node for node in list_nodes(kube)}
    return ClusterView(uid, nodes, tuple(_list(kube, "/api/v1/pods", Pod)))


def list_nodes(kube: KubeApi) -> list[Node]:
    """All nodes. Raises NodefallError."""
    return _list(kube, "/api/v1/nodes", Node)


def _list(kube: KubeApi, path: str, type_: type[T]) -> list[T]:
    response = kube.request("GET", path)
    if response.status != 200:
        raise Refused(
            f"GET {path}: the API server answered {response.status}",
            hint="grant the credentials of the kubeconfig list and watch on nodes and pods",
        )
    return [msgspec.json.decode(item, type=type_) for item in msgspec.json.decode(response.body, type=_List).items]


def get_objects(paths: Iterable[str], kube: KubeApi) -> dict[str, Any]:
    """API objects by path, None for those that do not exist. Raises Refused."""
    found: dict[str, Any] = {}
    for path in dict.fromkeys(paths):
        response = kube.request("GET", path)
        if response.status not in (200, 404):
            raise Refused(f"GET {path}: the API server answered {response.status}")
        found[path] = msgspec.json.decode(response.body) if response.status == 200 else None
    return found
