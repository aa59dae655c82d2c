"""A taint taken from a node."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._nodes import check_node, has_taint, node_object, restore_taints
from chaos.model.action import Action, Proof, ProofResult, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.api_fact import field, node_path
from chaos.model.command import Command, TaintsCommand
from chaos.model.experiment import Model
from chaos.model.permission import PATCH_NODES, Permission
from chaos.model.timeline import Timeline


class Params(Model):
    """Which taints."""

    key: str = Field(min_length=1)
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="only this one; all effects of the key if left out"
    )


def _check_untainted(timeline: Timeline, step: StepRun) -> ProofResult:
    key, effect = str(step.params.get("key")), str(step.params.get("effect") or "")
    return check_node(timeline, step, lambda node: not has_taint(node, key, effect), f"has no taint {key}")


class Untaint(Action):
    """A taint that an earlier step put there, or that was there before: the latter comes back with undo."""

    name = "untaint"
    summary = "take a taint from the node"
    example = "{name: untaint, action: untaint, target: victim, with: {key: example.com/broken}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("untainted", _check_untainted),)
    on_host = False

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Any) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Params) -> UndoState:
        before = {
            f"{t['key']}:{t['effect']}": t.get("value") or ""
            for t in field(node_object(target), "/spec/taints") or ()
            if t["key"] == params.key and params.effect in (None, t["effect"])
        }
        name = f"{params.key}:{params.effect}" if params.effect else params.key
        return {"node": target.node, "name": name, "before": before}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (TaintsCommand(memory["node"], remove=(memory["name"],)),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_taints(memory["node"], memory["before"])


ACTION = Untaint()
