"""The condition NetworkUnavailable, as a network plugin writes it."""

from __future__ import annotations

from typing import Any

from chaos.actions._nodes import check_node, node_object
from chaos.model.action import (
    Action,
    FactCheck,
    Proof,
    ProofResult,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoState,
    UndoStep,
)
from chaos.model.api_fact import condition_fact, field, node_path
from chaos.model.command import STRATEGIC_PATCH, Command, KubeCommand
from chaos.model.experiment import Model
from chaos.model.kube import Node, node_condition
from chaos.model.permission import Permission
from chaos.model.timeline import Timeline

_TYPE = "NetworkUnavailable"
_CONDITION_FIELDS = ("type", "status", "reason", "message")


class Params(Model):
    """None."""


def _is_unavailable(node: Node) -> bool:
    found = node_condition(node, _TYPE)
    return found is not None and found.status == "True"


def _check_condition(timeline: Timeline, step: StepRun) -> ProofResult:
    return check_node(timeline, step, _is_unavailable, f"has {_TYPE}=True")


def _patch(node: str, condition: dict[str, Any]) -> KubeCommand:
    return KubeCommand("PATCH", f"{node_path(node)}/status", {"status": {"conditions": [condition]}}, STRATEGIC_PATCH)


class NetworkUnavailable(Action):
    """Only the condition: no packet is dropped. The kubelet leaves it alone; a plugin that keeps it may correct it."""

    name = "network-unavailable"
    summary = "say of the node that its network is not configured (NetworkUnavailable=True)"
    example = "{name: say, action: network-unavailable, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("said", _check_condition),)
    on_host = False

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Any) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return (Permission("", "nodes/status", "patch"),)

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        found = field(node_object(target), "/status/conditions") or ()
        before = next((item for item in found if item.get("type") == _TYPE), None)
        return {"node": target.node, "before": before and {key: before.get(key) or "" for key in _CONDITION_FIELDS}}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        said = {"type": _TYPE, "status": "True", "reason": "Nodefall", "message": "an experiment says so"}
        return (_patch(memory["node"], said),)

    def undo(self, memory: UndoState) -> Undo:
        before = memory["before"]
        check = FactCheck(condition_fact(_TYPE), before["status"] if before else None)
        back = before or {"type": _TYPE, "$patch": "delete"}
        return Undo((UndoStep(_patch(memory["node"], back), unless=check),), (check,))


ACTION = NetworkUnavailable()
