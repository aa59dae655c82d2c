"""The condition NetworkUnavailable, as a network plugin writes it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from chaos.core.action import (
    Action,
    FactCheck,
    Proof,
    ProofResult,
    StepRun,
    Target,
    Undo,
    UndoKind,
)
from chaos.core.api_fact import condition_fact, field, node_path
from chaos.core.command import STRATEGIC_PATCH, Command, KubeCommand
from chaos.core.kube import Node, node_condition
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, origin_of
from chaos.core.permission import Permission
from chaos.core.timeline import Timeline
from chaos.faults.actions._nodes import check_node, mark_annotations, mark_removal, node_object, restore_once
from chaos.faults.actions._params import NoParams

_TYPE = "NetworkUnavailable"
_CONDITION_FIELDS = ("status", "reason", "message")


def _is_unavailable(node: Node) -> bool:
    found = node_condition(node, _TYPE)
    return found is not None and found.status == "True"


def _check_condition(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a version of the Node with the condition."""
    return check_node(timeline, step, _is_unavailable, f"has {_TYPE}=True")


def _patch(node: str, condition: dict[str, Any], notes: dict[str, str | None]) -> KubeCommand:
    """The API server accepts annotations with the status of a Node: kubelets write theirs so."""
    metadata = {"metadata": {"annotations": notes}} if notes else {}
    body = {**metadata, "status": {"conditions": [condition]}}
    return KubeCommand("PATCH", f"{node_path(node)}/status", body, STRATEGIC_PATCH)


class ConditionState(Struct, frozen=True):
    """The condition before the step, None if there was none."""

    node: NodeName
    previous: dict[str, str] | None
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        """The mark of the step; None without an origin, as in journals of 0.1.0."""
        status = self.previous["status"] if self.previous else None
        return NodeMark(self.origin.run, self.origin.step, conditions={_TYPE: status}) if self.origin else None


class NetworkUnavailable(Action[NoParams, ConditionState]):
    """Only the condition: no packet is dropped. The kubelet does not change it; a network plugin may correct it."""

    name = "network-unavailable"
    summary = "set the node's condition NetworkUnavailable=True, as if its network were not configured"
    example = "{name: say, action: network-unavailable, target: victim}"
    params = NoParams
    state = ConditionState
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("said", _check_condition),)
    on_host = False

    def api_reads(self, node: str, params: NoParams, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: NoParams) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return (Permission("", "nodes/status", "patch"),)

    def prepare(self, target: Target, params: NoParams) -> ConditionState:  # noqa: ARG002 - no parameters
        conditions = field(node_object(target), "/status/conditions") or ()
        found = next((item for item in conditions if item.get("type") == _TYPE), None)
        return ConditionState(
            target.node, found and {key: found.get(key) or "" for key in _CONDITION_FIELDS}, origin_of(target)
        )

    def inject(self, state: ConditionState) -> tuple[Command, ...]:
        condition = {"type": _TYPE, "status": "True", "reason": "Nodefall", "message": "set by an experiment"}
        return (_patch(state.node, condition, mark_annotations(state.mark)),)

    def undo(self, state: ConditionState) -> Undo:
        previous = state.previous
        restored = FactCheck(condition_fact(_TYPE), previous["status"] if previous else None)
        fields = {key: previous.get(key, "") for key in _CONDITION_FIELDS} if previous else {"$patch": "delete"}
        patch = _patch(state.node, {"type": _TYPE, **fields}, mark_removal(state.mark))
        return restore_once(state.node, patch, (restored,), state.mark)


ACTION = NetworkUnavailable()
