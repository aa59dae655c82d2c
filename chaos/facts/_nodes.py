"""Addresses in Node objects, for facts that need them."""

from __future__ import annotations

from typing import Any

from chaos.model.api_fact import object_fact

NODES = object_fact("/api/v1/nodes", "/items")


def node_addresses(nodes: Any) -> list[str]:
    """Internal and external addresses of Nodes."""
    return [
        address["address"]
        for node in nodes or ()
        for address in node.get("status", {}).get("addresses") or ()
        if address["type"] in ("InternalIP", "ExternalIP")
    ]
