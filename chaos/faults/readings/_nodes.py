"""Addresses and zones of Node objects, for facts that need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chaos.core.api_fact import field, object_fact
from chaos.core.labels import ZONE_LABEL

NODES = object_fact("/api/v1/nodes", "/items")


def node_addresses(nodes: Any) -> list[str]:
    """Internal and external addresses of Nodes."""
    return [
        address["address"]
        for node in nodes or ()
        for address in node.get("status", {}).get("addresses") or ()
        if address["type"] in ("InternalIP", "ExternalIP")
    ]


def label_of(node: Any, key: str) -> str:
    """Value of a label of a Node, "" without it."""
    return str((field(node, "/metadata/labels") or {}).get(key) or "")


def in_other_zones(nodes: Iterable[dict[str, Any]], zone: str) -> list[dict[str, Any]]:
    """Those of the Nodes that are in a zone, and in another one than ``zone``."""
    return [node for node in nodes if label_of(node, ZONE_LABEL) not in ("", zone)]
