"""Permissions that a complete snapshot needs; it notes what is missing without one of them."""

from __future__ import annotations

from msgspec.structs import replace

from chaos.cluster.snapshot.kinds import EVENTS, KINDS, UNMODELLED
from chaos.core.permission import Permission, permission_for_request


def snapshot_permissions(allow_node_proxy: bool) -> list[Permission]:
    """To list all kinds, and to read the configuration of kubelets. ``allow_node_proxy``: as of the inventory."""
    paths = [EVENTS, *(kind.path for kind in KINDS.values()), *UNMODELLED]
    lists = [replace(permission_for_request("GET", path), verb="list") for path in paths]
    nodes = ["nodes", "nodes/configz", *(["nodes/proxy"] if allow_node_proxy else [])]  # nodes: addresses of hosts
    reads = [Permission("", name, "get") for name in nodes]
    return sorted([*lists, *reads, Permission("", "namespaces", "get", "", "kube-system")])
