"""Taints of a node: added, removed, and node.kubernetes.io/out-of-service on a machine that is off."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct
from pydantic import Field

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    StepRun,
    Target,
    UndoKind,
)
from chaos.core.api_fact import PseudoFact, field
from chaos.core.command import TaintsCommand
from chaos.core.errors import Unsupported
from chaos.core.field_types import Model
from chaos.core.kube_names import LabelKey, LabelValue, PreviousTaints, RemovedTaint, TaintEffect, TaintSpec
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, origin_of
from chaos.core.permission import PATCH_NODES
from chaos.core.timeline import Timeline
from chaos.faults.actions._machine import can_read_power_state
from chaos.faults.actions._nodes import (
    READ_NODE,
    capture_taint,
    check_node,
    has_taint,
    mark_annotations,
    node_object,
    restore_taints,
    taint,
    taints_mark,
)

OUT_OF_SERVICE_KEY = "node.kubernetes.io/out-of-service"
_Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class TaintParams(Model):
    """The taint."""

    key: LabelKey
    value: LabelValue = ""
    effect: _Effect


def _check_tainted(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a version of the Node with the taint."""
    key, effect = str(step.params.get("key")), str(step.params.get("effect", ""))
    return check_node(timeline, step, lambda node: has_taint(node, key, effect), f"has the taint {key}:{effect}")


class TaintState(Struct, frozen=True):
    """The taint to add, and the previous value of the taint with the same key and effect."""

    node: NodeName
    taint: TaintSpec
    previous: PreviousTaints
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return taints_mark(self.origin, self.previous)


def _prepare_taint(target: Target, params: TaintParams) -> TaintState:
    previous = capture_taint(target, params.key, params.effect)
    added = TaintSpec(key=params.key, value=params.value, effect=params.effect)
    return TaintState(target.node, added, previous, origin_of(target))


def _taint(state: TaintState) -> Program:
    add = TaintsCommand(state.node, add=(msgspec.to_builtins(state.taint),), annotations=mark_annotations(state.mark))
    return Program((add,), restore_taints(state.node, state.previous, state.mark))


TAINT = Action(
    name="taint",
    summary="add a taint to the node",
    description="NoExecute evicts pods that do not tolerate the taint; those without a controller are not replaced.",
    example="{name: taint, action: taint, target: victim, with: {key: example.com/broken, effect: NoSchedule}}",
    params=TaintParams,
    state=TaintState,
    undo_kind=UndoKind.RESTORES,
    on_host=False,
    proofs=(Proof("tainted", _check_tainted),),
    needs=lambda params: Needs(objects=READ_NODE, permissions=PATCH_NODES, ends_pods=params.effect == "NoExecute"),
    prepare=_prepare_taint,
    program=_taint,
)


class UntaintParams(Model):
    """The taints to remove."""

    key: LabelKey
    effect: _Effect | None = Field(
        None, description="The effect of the taint to remove. By default, all effects of the key."
    )


def _check_untainted(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a version of the Node without the taint."""
    key, effect = str(step.params.get("key")), str(step.params.get("effect") or "")
    return check_node(timeline, step, lambda node: not has_taint(node, key, effect), f"has no taint {key}")


class UntaintState(Struct, frozen=True):
    """``KEY`` or ``KEY:EFFECT`` to remove, and the values of the taints that this removes."""

    node: NodeName
    name: RemovedTaint
    previous: PreviousTaints
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return taints_mark(self.origin, self.previous)


def _prepare_untaint(target: Target, params: UntaintParams) -> UntaintState:
    previous = {
        f"{t['key']}:{t['effect']}": t.get("value") or ""
        for t in field(node_object(target), "/spec/taints") or ()
        if t["key"] == params.key and params.effect in (None, t["effect"])
    }
    name = f"{params.key}:{params.effect}" if params.effect else params.key
    return UntaintState(target.node, name, previous, origin_of(target))


def _untaint(state: UntaintState) -> Program:
    remove = TaintsCommand(state.node, remove=(state.name,), annotations=mark_annotations(state.mark))
    return Program((remove,), restore_taints(state.node, state.previous, state.mark))


UNTAINT = Action(
    name="untaint",
    summary="remove a taint from the node",
    description="Removes a taint that an earlier step added, or one from before the run, which undo restores.",
    example="{name: untaint, action: untaint, target: victim, with: {key: example.com/broken}}",
    params=UntaintParams,
    state=UntaintState,
    undo_kind=UndoKind.RESTORES,
    on_host=False,
    proofs=(Proof("untainted", _check_untainted),),
    needs=Needs(objects=READ_NODE, permissions=PATCH_NODES),
    prepare=_prepare_untaint,
    program=_untaint,
)


class OutOfServiceParams(Model):
    """NoExecute also evicts the pods; NoSchedule only affects pods that are terminating already (facts 6)."""

    effect: Literal["NoExecute", "NoSchedule"] = Field(
        "NoExecute", description="The effect of the taint. NoExecute also evicts the pods."
    )


def _check_out_of_service(timeline: Timeline, step: StepRun) -> ProofResult:
    what = f"has the taint {OUT_OF_SERVICE_KEY}"
    return check_node(timeline, step, lambda node: has_taint(node, OUT_OF_SERVICE_KEY), what)


class OutOfServiceState(Struct, frozen=True):
    """Effect of the taint, and the previous value of the taint with that effect."""

    node: NodeName
    effect: TaintEffect
    previous: PreviousTaints
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return taints_mark(self.origin, self.previous)


def _prepare_out_of_service(target: Target, params: OutOfServiceParams) -> OutOfServiceState:
    if not can_read_power_state(target):
        why = f"{target.node} has no power control that can read that the machine is off"
        raise Unsupported(why, hint="give its host a power control in the inventory that reads the state")
    previous = capture_taint(target, OUT_OF_SERVICE_KEY, params.effect)
    if any(value is not None for value in previous.values()):
        raise Unsupported(f"{target.node} has the taint {OUT_OF_SERVICE_KEY} already", hint="remove it first")
    return OutOfServiceState(target.node, params.effect, previous, origin_of(target))


def _declare_out_of_service(state: OutOfServiceState) -> Program:
    added = taint(OUT_OF_SERVICE_KEY, "nodeshutdown", state.effect)
    is_back = (FactCheck(PseudoFact.MACHINE, "on"), NODE_READY)
    return Program(
        (TaintsCommand(state.node, add=(added,), annotations=mark_annotations(state.mark)),),
        restore_taints(state.node, state.previous, state.mark, when=is_back),
        # A power control may say "off" of a machine that runs on; then its kubelet keeps the node Ready.
        preconditions=(FactCheck(PseudoFact.MACHINE, "off"), FactCheck(PseudoFact.NODE_READY, False)),
    )


OUT_OF_SERVICE = Action(
    name="out-of-service",
    summary="declare a machine that is off out of service, so that its pods and volumes move",
    description="""
    The action works only while the power control reports that the machine is off and the node is not Ready. On a
    running node, volumes would be detached while pods use them. Undo removes the taint when the node is back, as
    Kubernetes documents it. An experiment with a ``power-on`` needs a separate ``untaint`` step before or after it.
    """,
    example="{name: declare, action: out-of-service, target: victim}",
    params=OutOfServiceParams,
    state=OutOfServiceState,
    undo_kind=UndoKind.RESTORES,
    through_api=True,
    requires_later_step=("power-on", "untaint"),
    proofs=(Proof("tainted", _check_out_of_service),),
    needs=Needs(proof_facts=(PseudoFact.MACHINE,), objects=READ_NODE, permissions=PATCH_NODES),
    prepare=_prepare_out_of_service,
    program=_declare_out_of_service,
)
