"""A taint removed from a node."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from pydantic import Field

from chaos.core.action import Action, Proof, ProofResult, StepRun, Target, Undo, UndoKind
from chaos.core.api_fact import field, node_path
from chaos.core.command import Command, TaintsCommand
from chaos.core.field_types import Model
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, TaintName, origin_of
from chaos.core.permission import PATCH_NODES, Permission
from chaos.core.timeline import Timeline
from chaos.faults.actions._nodes import (
    check_node,
    has_taint,
    mark_annotations,
    node_object,
    restore_taints,
    taints_mark,
)


class Params(Model):
    """Which taints."""

    key: str = Field(min_length=1)
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="only this one; all effects of the key if left out"
    )


def _check_untainted(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a version of the Node without the taint."""
    key, effect = str(step.params.get("key")), str(step.params.get("effect") or "")
    return check_node(timeline, step, lambda node: not has_taint(node, key, effect), f"has no taint {key}")


class UntaintState(Struct, frozen=True):
    """``KEY`` or ``KEY:EFFECT`` to remove, and the values of the taints that this removes."""

    node: NodeName
    name: str
    previous: dict[TaintName, str | None]
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return taints_mark(self.origin, self.previous)


class Untaint(Action[Params, UntaintState]):
    """Removes a taint that an earlier step added, or one from before the run, which undo restores."""

    name = "untaint"
    summary = "remove a taint from the node"
    example = "{name: untaint, action: untaint, target: victim, with: {key: example.com/broken}}"
    params = Params
    state = UntaintState
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("untainted", _check_untainted),)
    on_host = False

    def api_reads(self, node: str, params: Params, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Params) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Params) -> UntaintState:
        previous = {
            f"{t['key']}:{t['effect']}": t.get("value") or ""
            for t in field(node_object(target), "/spec/taints") or ()
            if t["key"] == params.key and params.effect in (None, t["effect"])
        }
        name = f"{params.key}:{params.effect}" if params.effect else params.key
        return UntaintState(target.node, name, previous, origin_of(target))

    def inject(self, state: UntaintState) -> tuple[Command, ...]:
        return (TaintsCommand(state.node, remove=(state.name,), annotations=mark_annotations(state.mark)),)

    def undo(self, state: UntaintState) -> Undo:
        return restore_taints(state.node, state.previous, state.mark)


ACTION = Untaint()
