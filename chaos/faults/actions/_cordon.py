"""Base of cordon and uncordon: one field of the Node, and the same undo."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.api_fact import node_path
from chaos.core.command import Command
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, origin_of
from chaos.core.permission import PATCH_NODES, Permission
from chaos.faults.actions._nodes import cordon, cordon_mark, is_cordoned, mark_annotations, restore_cordon
from chaos.faults.actions._params import NoParams


class CordonState(Struct, frozen=True):
    """Whether the node was cordoned before the step."""

    node: NodeName
    cordoned: bool
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return cordon_mark(self.origin, self.cordoned)


class CordonBase(Action[NoParams, CordonState]):
    """``unschedulable``: the value that the step sets. Undo restores the previous value."""

    unschedulable: bool
    params = NoParams
    state = CordonState
    undo_kind = UndoKind.RESTORES
    on_host = False

    def api_reads(self, node: str, params: NoParams, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: NoParams) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: NoParams) -> CordonState:  # noqa: ARG002 - no parameters
        return CordonState(target.node, is_cordoned(target), origin_of(target))

    def inject(self, state: CordonState) -> tuple[Command, ...]:
        return (cordon(state.node, self.unschedulable, mark_annotations(state.mark)),)

    def undo(self, state: CordonState) -> Undo:
        return restore_cordon(state.node, state.cordoned, state.mark)
