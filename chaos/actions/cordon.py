"""A node that takes no new pods."""

from __future__ import annotations

from typing import Any

from chaos.actions._nodes import CORDONED, cordon, cordon_as_before, is_cordoned
from chaos.model.action import Action, Memory, Target, Undo, UndoKind
from chaos.model.apifact import node_path
from chaos.model.command import Command
from chaos.model.experiment import Model
from chaos.model.right import PATCH_NODES, Right


class Params(Model):
    """None."""


class Cordon(Action):
    """Pods that run there stay. A node that was cordoned before stays so after undo."""

    name = "cordon"
    summary = "cordon the node: no new pod is scheduled there"
    example = "{name: cordon, action: cordon, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (CORDONED,)
    on_host = False

    def reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def rights(self, params: Any) -> tuple[Right, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        return {"node": target.node, "cordoned": is_cordoned(target)}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (cordon(memory["node"], True),)

    def undo(self, memory: Memory) -> Undo:
        return cordon_as_before(memory["node"], memory["cordoned"])


ACTION = Cordon()
