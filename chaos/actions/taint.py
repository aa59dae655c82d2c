"""A taint on a node."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._nodes import capture_taint, check_node, has_taint, restore_taints, taint
from chaos.model.action import Action, Proof, ProofResult, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.api_fact import node_path
from chaos.model.command import Command, TaintsCommand
from chaos.model.experiment import Model
from chaos.model.permission import PATCH_NODES, Permission
from chaos.model.timeline import Timeline


class Params(Model):
    """The taint."""

    key: str = Field(min_length=1)
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


def _check_tainted(timeline: Timeline, step: StepRun) -> ProofResult:
    key, effect = str(step.params.get("key")), str(step.params.get("effect", ""))
    return check_node(timeline, step, lambda node: has_taint(node, key, effect), f"has the taint {key}:{effect}")


class Taint(Action):
    """NoExecute ends pods that do not tolerate it; those without a controller do not come back."""

    name = "taint"
    summary = "put a taint on the node"
    example = "{name: taint, action: taint, target: victim, with: {key: example.com/broken, effect: NoSchedule}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("tainted", _check_tainted),)
    on_host = False

    def terminates_pods(self, params: Params) -> bool:
        return params.effect == "NoExecute"

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Any) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Params) -> UndoState:
        before = capture_taint(target, params.key, params.effect)
        return {"node": target.node, "taint": taint(params.key, params.value, params.effect), "before": before}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (TaintsCommand(memory["node"], add=(memory["taint"],)),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_taints(memory["node"], memory["before"])


ACTION = Taint()
