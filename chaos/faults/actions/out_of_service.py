"""The taint node.kubernetes.io/out-of-service on a machine that is off: pods are deleted, volumes detached at once."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from pydantic import Field

from chaos.core.action import Action, FactCheck, Proof, ProofResult, StepRun, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact, node_path
from chaos.core.command import Command, TaintsCommand
from chaos.core.errors import Unsupported
from chaos.core.field_types import Model
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, TaintName, origin_of
from chaos.core.permission import PATCH_NODES, Permission
from chaos.core.timeline import Timeline
from chaos.faults.actions._machine import can_read_power_state
from chaos.faults.actions._nodes import (
    capture_taint,
    check_node,
    has_taint,
    mark_annotations,
    restore_taints,
    taint,
    taints_mark,
)

TAINT_KEY = "node.kubernetes.io/out-of-service"


class Params(Model):
    """NoExecute also evicts the pods; NoSchedule only affects pods that are terminating already (facts 6)."""

    effect: Literal["NoExecute", "NoSchedule"] = Field("NoExecute", description="NoExecute evicts the pods as well")


def _check_tainted(timeline: Timeline, step: StepRun) -> ProofResult:
    return check_node(timeline, step, lambda node: has_taint(node, TAINT_KEY), f"has the taint {TAINT_KEY}")


class OutOfServiceState(Struct, frozen=True):
    """Effect of the taint, and the previous value of the taint with that effect."""

    node: NodeName
    effect: str
    previous: dict[TaintName, str | None]
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return taints_mark(self.origin, self.previous)


class OutOfService(Action[Params, OutOfServiceState]):
    """Only while the power control reports that the machine is off: on a running node volumes would be detached under
    its pods. Undo removes the taint when the node is back, as Kubernetes documents it. An experiment with a
    ``power-on`` needs a separate ``untaint`` step, before it or after it.
    """

    name = "out-of-service"
    summary = "declare a machine that is off out of service, so that its pods and volumes move"
    example = "{name: declare, action: out-of-service, target: victim}"
    params = Params
    state = OutOfServiceState
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("tainted", _check_tainted),)
    proof_facts = (PseudoFact.MACHINE,)
    requires_later_step = ("power-on", "untaint")

    def api_reads(self, node: str, params: Params, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Params) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return PATCH_NODES

    def prepare(self, target: Target, params: Params) -> OutOfServiceState:
        if not can_read_power_state(target):
            why = f"{target.node} has no power control that can read that the machine is off"
            raise Unsupported(why, hint="give its host a power control in the inventory that reads the state")
        previous = capture_taint(target, TAINT_KEY, params.effect)
        if any(value is not None for value in previous.values()):
            raise Unsupported(f"{target.node} has the taint {TAINT_KEY} already", hint="remove it first")
        return OutOfServiceState(target.node, params.effect, previous, origin_of(target))

    def preconditions(self, state: OutOfServiceState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck(PseudoFact.MACHINE, "off"),)

    def inject(self, state: OutOfServiceState) -> tuple[Command, ...]:
        added = taint(TAINT_KEY, "nodeshutdown", state.effect)
        return (TaintsCommand(state.node, add=(added,), annotations=mark_annotations(state.mark)),)

    def undo(self, state: OutOfServiceState) -> Undo:
        is_back = (FactCheck(PseudoFact.MACHINE, "on"), FactCheck(PseudoFact.NODE_READY, True))
        return restore_taints(state.node, state.previous, state.mark, when=is_back)


ACTION = OutOfService()
