"""Admission of Nodes."""

from __future__ import annotations

from typing import Protocol

from chaos.lab.apiserver.store import ConflictError, Store
from chaos.lab.objects import NOT_READY, Object, name_of
from chaos.lab.rules import Rules
from chaos.lab.rules.control_plane import ApiServerRules
from chaos.lab.sim import SimClock


class NodeRegistry(Protocol):
    """Where Nodes are."""

    store: Store
    rules: Rules

    def delete(self, plural: str, namespace: str, name: str) -> Object: ...


def admit_node(node: Object, sim: SimClock, rules: ApiServerRules) -> None:
    """Add the not-ready taint to a new node: admission TaintNodesByCondition (facts 5.4)."""
    status = node.setdefault("status", {})
    for kind in ("capacity", "allocatable") if rules.default_node_capacity else ():
        status.setdefault(kind, dict(rules.default_node_capacity))
    status.setdefault("conditions", [])
    status.setdefault("nodeInfo", {"bootID": "", "machineID": "", "systemUUID": "", "kubeletVersion": ""})
    taints = node.setdefault("spec", {}).setdefault("taints", [])
    is_tainted = any(taint["key"] == NOT_READY and taint["effect"] == "NoSchedule" for taint in taints)
    if rules.taints_new_nodes and not is_tainted:
        taints.append({"key": NOT_READY, "effect": "NoSchedule", "timeAdded": sim.timestamp()})


def make_room(registry: NodeRegistry, node: Object) -> None:
    """Delete a Node whose name another wants, where the rules say so. Raises ConflictError."""
    name, what = name_of(node), registry.rules.api_server.second_node
    if what != "refused" and registry.store.get("nodes", "", name) is not None:
        registry.delete("nodes", "", name)
        if what == "deletes":
            raise ConflictError(f'nodes "{name}" already exists')
