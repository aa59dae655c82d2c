"""logind's signal PrepareForShutdown without a shutdown: the kubelet terminates its pods, the machine stays up.

The kubelet does not check the sender (kubernetes pkg/kubelet/nodeshutdown/systemd/inhibit_linux.go); the upstream
end-to-end test emits it in the same way.
"""

from __future__ import annotations

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
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
)
from chaos.core.command import HostCommand
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import EXIT_CODE_ZERO, no_proof
from chaos.core.field_types import Flag, Model
from chaos.core.kube import node_condition
from chaos.core.node_mark import NodeUnit
from chaos.core.timeline import Timeline

_LOCK_GRACE_SECONDS = 15.0  # beyond the grace period, in which a kubelet takes its lock again


class Params(Model):
    """The signal's boolean."""

    active: Flag = Field(description="true announces a shutdown. false cancels it.")


def _emit(active: bool) -> HostCommand:
    value = "true" if active else "false"
    manager = ("/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    return HostCommand(("busctl", "emit", *manager, "PrepareForShutdown", "b", value))


def _check_kubelet_event(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by the kubelet's event about the signal. Events are best effort, so a missing event disproves nothing."""
    wanted = "detected shutdown event" if step.params.get("active") else "detected shutdown cancellation"
    for entry, event in timeline.events.about(step.node):
        about = event.involved_object
        if entry.type == "LIST" or not step.begin <= entry.t <= step.until or about is None:
            continue
        if about.kind == "Node" and wanted in (event.message or ""):
            return ProofResult(ProofStatus.PROVEN, f"the kubelet of {step.node} reported: {wanted}", (entry.seq,))
    return no_proof(f"the kubelet of {step.node} reported no signal")


def _check_kubelet_condition(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven, for an announcement, by the message of the Ready condition."""
    history = timeline.nodes.get(step.node)
    for version in (history or ()) if step.params.get("active") else ():
        ready = node_condition(version.object, "Ready")
        if step.begin <= version.t <= step.until and ready and "node is shutting down" in (ready.message or ""):
            return ProofResult(
                ProofStatus.PROVEN, f"the kubelet of {step.node} reports that the node shuts down", (version.seq,)
            )
    return no_proof(f"the kubelet of {step.node} does not report that the node shuts down")


class SignalState(Struct, frozen=True):
    """The signal's boolean; the kubelet's unit, whether it held its lock, and how long it may take to hold it again."""

    active: bool
    had_inhibitor: bool
    unit: NodeUnit
    grace_seconds: float


def _prepare(target: Target, params: Params) -> SignalState:
    if target.static_pods:
        raise Unsupported(
            f"{target.node} runs static pods ({', '.join(target.static_pods)}) that would not start again",
            hint="choose a node without static pods",
        )
    grace = (target.facts.get("configz") or {}).get("shutdownGracePeriod", "0s")
    return SignalState(
        params.active,
        bool(target.facts.get("inhibitor-kubelet")),
        target.facts.get("kubelet-unit") or "kubelet.service",
        parse_duration(grace) + _LOCK_GRACE_SECONDS,
    )


def _program(state: SignalState) -> Program:
    """The undo is proven when a Ready node has received the cancellation; a kubelet restart restores a lost lock."""
    steps, proof = [UndoStep(_emit(False), unless=NODE_READY)], [NODE_READY]
    if state.had_inhibitor:
        lock = FactCheck("inhibitor-kubelet", True)
        restart = HostCommand(("systemctl", "restart", state.unit))
        steps.append(UndoStep(restart, unless=lock, grace_seconds=state.grace_seconds))
        proof.append(lock)
    return Program((_emit(state.active),), Undo(tuple(steps), tuple(proof)))


ACTION = Action(
    name="prepare-for-shutdown",
    summary="send the kubelet logind's signal that a shutdown begins (active: true) or is cancelled (false)",
    description="""
    The action is refused on nodes with static pods, because terminated static pods do not start again until the
    kubelet restarts.
    """,
    example="{name: announce, action: prepare-for-shutdown, target: victim, with: {active: true}}",
    params=Params,
    state=SignalState,
    no_windows_reason="Windows has no logind",
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,
    proofs=(
        Proof("kubelet-event", _check_kubelet_event),
        Proof("kubelet-condition", _check_kubelet_condition),
        EXIT_CODE_ZERO,
    ),
    needs=Needs(proof_facts=("inhibitor-locks", "inhibitor-kubelet", "kubelet-unit", "pid1-start"), logind=True),
    prepare=_prepare,
    program=_program,
)
