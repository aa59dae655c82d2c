"""The taint node.kubernetes.io/out-of-service on a machine that is off: its pods and volumes are let go at once."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._machine import can_read_power_state
from chaos.actions._nodes import capture_taint, check_node, has_taint, restore_taints, taint
from chaos.model.action import Action, FactCheck, Proof, ProofResult, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.api_fact import node_path
from chaos.model.command import Command, TaintsCommand
from chaos.model.errors import Unsupported
from chaos.model.experiment import Model
from chaos.model.permission import PATCH_NODES, Permission
from chaos.model.timeline import Timeline

TAINT_KEY = "node.kubernetes.io/out-of-service"


class Params(Model):
    """NoExecute also evicts the pods; NoSchedule only lets go what is Terminating already (facts 6)."""

    effect: Literal["NoExecute", "NoSchedule"] = Field("NoExecute", description="NoExecute evicts the pods as well")


def _check_tainted(timeline: Timeline, step: StepRun) -> ProofResult:
    return check_node(timeline, step, lambda node: has_taint(node, TAINT_KEY), f"has the taint {TAINT_KEY}")


class OutOfService(Action):
    """Only while the power control says that the machine is off: on a node that runs, volumes would be detached
    under its pods. Undo takes the taint away when the node is back, as Kubernetes' documentation says. A ``power-on``
    in the experiment needs an ``untaint`` of its own, before it or after it.
    """

    name = "out-of-service"
    summary = "declare a machine that is off out of service, so that its pods and volumes move"
    example = "{name: declare, action: out-of-service, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("tainted", _check_tainted),)
    proof_facts = ("machine",)
    requires_later_step = ("power-on", "untaint")

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Any) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Params) -> UndoState:
        if not can_read_power_state(target):
            why = f"{target.node} has no power control that could say that it is off"
            raise Unsupported(why, hint="give its host one in the inventory that tells the state")
        before = capture_taint(target, TAINT_KEY, params.effect)
        if any(value is not None for value in before.values()):
            raise Unsupported(f"{target.node} has the taint {TAINT_KEY} already", hint="take it away first")
        return {"node": target.node, "effect": params.effect, "before": before}

    def preconditions(self, memory: UndoState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("machine", "off"),)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (TaintsCommand(memory["node"], add=(taint(TAINT_KEY, "nodeshutdown", memory["effect"]),)),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_taints(
            memory["node"], memory["before"], (FactCheck("machine", "on"), FactCheck("node-ready", True))
        )


ACTION = OutOfService()
