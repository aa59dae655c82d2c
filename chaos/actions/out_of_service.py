"""The taint node.kubernetes.io/out-of-service on a machine that is off: its pods and volumes are let go at once."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._machine import tells_state
from chaos.actions._nodes import has_taint, node_shows, taint, taint_before, taints_as_before
from chaos.model.action import Action, Check, Finding, Memory, Proof, StepRun, Target, Undo, UndoKind
from chaos.model.apifact import node_path
from chaos.model.command import Command, TaintsCommand
from chaos.model.errors import Unsupported
from chaos.model.experiment import Model
from chaos.model.right import PATCH_NODES, Right
from chaos.model.timeline import Timeline

KEY = "node.kubernetes.io/out-of-service"


class Params(Model):
    """NoExecute also evicts the pods; NoSchedule only lets go what is Terminating already (facts 6)."""

    effect: Literal["NoExecute", "NoSchedule"] = Field("NoExecute", description="NoExecute evicts the pods as well")


def _tainted(timeline: Timeline, step: StepRun) -> Finding:
    return node_shows(timeline, step, lambda node: has_taint(node, KEY), f"has the taint {KEY}")


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
    proofs = (Proof("tainted", _tainted),)
    probes = ("machine",)
    outlives = ("power-on", "untaint")

    def reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def rights(self, params: Any) -> tuple[Right, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Params) -> Memory:
        if not tells_state(target):
            why = f"{target.node} has no power control that could say that it is off"
            raise Unsupported(why, hint="give its host one in the inventory that tells the state")
        before = taint_before(target, KEY, params.effect)
        if any(value is not None for value in before.values()):
            raise Unsupported(f"{target.node} has the taint {KEY} already", hint="take it away first")
        return {"node": target.node, "effect": params.effect, "before": before}

    def before(self, memory: Memory) -> tuple[Check, ...]:  # noqa: ARG002 - the same on every node
        return (Check("machine", "off"),)

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (TaintsCommand(memory["node"], add=(taint(KEY, "nodeshutdown", memory["effect"]),)),)

    def undo(self, memory: Memory) -> Undo:
        return taints_as_before(memory["node"], memory["before"], (Check("machine", "on"), Check("node-ready", True)))


ACTION = OutOfService()
