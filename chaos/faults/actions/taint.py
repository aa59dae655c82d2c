"""A taint on a node."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from pydantic import Field

from chaos.core.action import Action, Proof, ProofResult, StepRun, Target, Undo, UndoKind
from chaos.core.api_fact import node_path
from chaos.core.command import Command, TaintsCommand
from chaos.core.field_types import Model
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, TaintName, origin_of
from chaos.core.permission import PATCH_NODES, Permission
from chaos.core.timeline import Timeline
from chaos.faults.actions._nodes import (
    capture_taint,
    check_node,
    has_taint,
    mark_annotations,
    restore_taints,
    taint,
    taints_mark,
)


class Params(Model):
    """The taint."""

    key: str = Field(min_length=1)
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


def _check_tainted(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a version of the Node with the taint."""
    key, effect = str(step.params.get("key")), str(step.params.get("effect", ""))
    return check_node(timeline, step, lambda node: has_taint(node, key, effect), f"has the taint {key}:{effect}")


class TaintState(Struct, frozen=True):
    """The taint to add, and the previous value of the one with the same key and effect."""

    node: NodeName
    taint: dict[str, str]
    previous: dict[TaintName, str | None]
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return taints_mark(self.origin, self.previous)


class Taint(Action[Params, TaintState]):
    """NoExecute evicts pods that do not tolerate the taint; those without a controller are not replaced."""

    name = "taint"
    summary = "add a taint to the node"
    example = "{name: taint, action: taint, target: victim, with: {key: example.com/broken, effect: NoSchedule}}"
    params = Params
    state = TaintState
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("tainted", _check_tainted),)
    on_host = False

    def terminates_pods(self, params: Params) -> bool:
        return params.effect == "NoExecute"

    def api_reads(self, node: str, params: Params, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Params) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Params) -> TaintState:
        previous = capture_taint(target, params.key, params.effect)
        return TaintState(target.node, taint(params.key, params.value, params.effect), previous, origin_of(target))

    def inject(self, state: TaintState) -> tuple[Command, ...]:
        return (TaintsCommand(state.node, add=(state.taint,), annotations=mark_annotations(state.mark)),)

    def undo(self, state: TaintState) -> Undo:
        return restore_taints(state.node, state.previous, state.mark)


ACTION = Taint()
