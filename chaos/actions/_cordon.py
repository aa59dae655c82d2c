"""What cordon and uncordon share: one field of the Node, and the same way back."""

from __future__ import annotations

from typing import Any

from chaos.actions._nodes import cordon, is_cordoned, restore_cordon
from chaos.model.action import Action, Target, Undo, UndoKind, UndoState
from chaos.model.api_fact import node_path
from chaos.model.command import Command
from chaos.model.experiment import Model
from chaos.model.permission import PATCH_NODES, Permission


class Params(Model):
    """None."""


class CordonBase(Action):
    """``on``: whether the node is to be cordoned. Undo makes it what it was before."""

    unschedulable: bool
    params = Params
    undo_kind = UndoKind.RESTORES
    on_host = False

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Any) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        return {"node": target.node, "cordoned": is_cordoned(target)}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (cordon(memory["node"], self.unschedulable),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_cordon(memory["node"], memory["cordoned"])
