"""A node that takes new pods again."""

from __future__ import annotations

from typing import Any

from chaos.actions._nodes import UNCORDONED, cordon, cordon_as_before, is_cordoned
from chaos.model.action import Action, Memory, Target, Undo, UndoKind
from chaos.model.apifact import node_path
from chaos.model.command import Command
from chaos.model.experiment import Model
from chaos.model.right import PATCH_NODES, Right


class Params(Model):
    """None."""


class Uncordon(Action):
    """What a drain or another tool cordoned. A node that was cordoned before is so again after undo."""

    name = "uncordon"
    summary = "uncordon the node: pods are scheduled there again"
    example = "{name: uncordon, action: uncordon, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (UNCORDONED,)
    on_host = False

    def reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def rights(self, params: Any) -> tuple[Right, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        return {"node": target.node, "cordoned": is_cordoned(target)}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (cordon(memory["node"], False),)

    def undo(self, memory: Memory) -> Undo:
        return cordon_as_before(memory["node"], memory["cordoned"])


ACTION = Uncordon()
