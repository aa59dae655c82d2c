"""What cordon and uncordon share: one field of the Node, and the same way back."""

from __future__ import annotations

from typing import Any

from chaos.actions._nodes import cordon, cordon_as_before, is_cordoned
from chaos.model.action import Action, Memory, Target, Undo, UndoKind
from chaos.model.apifact import node_path
from chaos.model.command import Command
from chaos.model.experiment import Model
from chaos.model.right import PATCH_NODES, Right


class Params(Model):
    """None."""


class Cordoning(Action):
    """``on``: whether the node is to be cordoned. Undo makes it what it was before."""

    on: bool
    params = Params
    undo_kind = UndoKind.RESTORES
    on_host = False

    def reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def rights(self, params: Any) -> tuple[Right, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        return {"node": target.node, "cordoned": is_cordoned(target)}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (cordon(memory["node"], self.on),)

    def undo(self, memory: Memory) -> Undo:
        return cordon_as_before(memory["node"], memory["cordoned"])
