"""The condition NetworkUnavailable, as a network plugin writes it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from chaos.core.action import Action, FactCheck, Needs, Program, Proof, ProofResult, StepRun, Target, UndoKind
from chaos.core.api_fact import condition_fact, field, node_path
from chaos.core.command import STRATEGIC_PATCH, KubeCommand
from chaos.core.kube import Node, node_condition
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, origin_of
from chaos.core.permission import Permission
from chaos.core.timeline import Timeline
from chaos.faults.actions._nodes import READ_NODE, check_node, mark_annotations, mark_removal, node_object, restore_once
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
    """The patch. The API server accepts annotations together with a Node's status, as kubelets send them."""
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


def _prepare(target: Target, _: NoParams) -> ConditionState:
    conditions = field(node_object(target), "/status/conditions") or ()
    found = next((item for item in conditions if item.get("type") == _TYPE), None)
    previous = found and {key: found.get(key) or "" for key in _CONDITION_FIELDS}
    return ConditionState(target.node, previous, origin_of(target))


def _program(state: ConditionState) -> Program:
    condition = {"type": _TYPE, "status": "True", "reason": "Nodefall", "message": "set by an experiment"}
    previous = state.previous
    restored = FactCheck(condition_fact(_TYPE), previous["status"] if previous else None)
    fields = {key: previous.get(key, "") for key in _CONDITION_FIELDS} if previous else {"$patch": "delete"}
    patch = _patch(state.node, {"type": _TYPE, **fields}, mark_removal(state.mark))
    return Program(
        (_patch(state.node, condition, mark_annotations(state.mark)),),
        restore_once(state.node, patch, (restored,), state.mark),
    )


ACTION = Action(
    name="network-unavailable",
    summary="set the node's condition NetworkUnavailable=True, as if its network were not configured",
    description="""
    Only the condition changes; no packet is dropped. The kubelet does not touch the condition, but a network plugin
    may correct it.
    """,
    example="{name: say, action: network-unavailable, target: victim}",
    params=NoParams,
    state=ConditionState,
    undo_kind=UndoKind.RESTORES,
    on_host=False,
    proofs=(Proof("said", _check_condition),),
    needs=Needs(objects=READ_NODE, permissions=(Permission("", "nodes/status", "patch"),)),
    prepare=_prepare,
    program=_program,
)
