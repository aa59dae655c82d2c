"""logind's signal PrepareForShutdown without a shutdown: the kubelet ends its pods, the machine stays up.

The kubelet does not check who sent it (kubernetes pkg/kubelet/nodeshutdown/systemd/inhibit_linux.go); the upstream
end-to-end test emits it in the same way.
"""

from __future__ import annotations

from pydantic import Field

from chaos.model.action import (
    Action,
    FactCheck,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoState,
    UndoStep,
)
from chaos.model.command import Command, HostCommand
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.evidence import EXIT_CODE_ZERO, no_proof
from chaos.model.experiment import Model
from chaos.model.kube import node_condition
from chaos.model.timeline import Timeline

_LOCK_GRACE_SECONDS = 15.0  # seconds, beyond the grace period, in which a kubelet takes its lock again


class Params(Model):
    """The signal's boolean."""

    active: bool = Field(description="true announces a shutdown, false cancels it")


def _emit(active: bool) -> HostCommand:
    value = "true" if active else "false"
    return HostCommand(
        (
            "busctl",
            "emit",
            "/org/freedesktop/login1",
            "org.freedesktop.login1.Manager",
            "PrepareForShutdown",
            "b",
            value,
        )
    )


def _check_kubelet_event(timeline: Timeline, step: StepRun) -> ProofResult:
    """The kubelet's own event about the signal. Events are best effort, so a missing one shows nothing."""
    wanted = "detected shutdown event" if step.params.get("active") else "detected shutdown cancellation"
    for entry, event in timeline.events:
        about = event.involved_object
        if entry.type == "LIST" or not step.begin <= entry.t <= step.until or about is None:
            continue
        if about.kind == "Node" and about.name == step.node and wanted in (event.message or ""):
            return ProofResult(ProofStatus.PROVEN, f"the kubelet of {step.node} told that it {wanted}", (entry.seq,))
    return no_proof(f"the kubelet of {step.node} told of no signal")


def _check_kubelet_condition(timeline: Timeline, step: StepRun) -> ProofResult:
    """For an announcement: the Ready condition says so."""
    history = timeline.nodes.get(step.node)
    for version in (history or ()) if step.params.get("active") else ():
        ready = node_condition(version.object, "Ready")
        if step.begin <= version.t <= step.until and ready and "node is shutting down" in (ready.message or ""):
            return ProofResult(
                ProofStatus.PROVEN, f"the kubelet of {step.node} says that it shuts down", (version.seq,)
            )
    return no_proof(f"the kubelet of {step.node} does not say that it shuts down")


class PrepareForShutdown(Action):
    """Refused on nodes with static pods: once ended they do not come back until the kubelet restarts."""

    name = "prepare-for-shutdown"
    summary = "send the kubelet logind's signal that a shutdown begins (active: true) or is cancelled (false)"
    example = "{name: announce, action: prepare-for-shutdown, target: victim, with: {active: true}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    requires_logind = True
    proofs = (
        Proof("kubelet-event", _check_kubelet_event),
        Proof("kubelet-condition", _check_kubelet_condition),
        EXIT_CODE_ZERO,
    )
    proof_facts = ("inhibitors", "kubelet-inhibitor", "kubelet-unit", "pid1-start")

    def prepare(self, target: Target, params: Params) -> UndoState:
        if target.static_pods:
            raise Unsupported(
                f"{target.node} runs static pods ({', '.join(target.static_pods)}) that would not come back",
                hint="choose a node without static pods",
            )
        grace = (target.facts.get("configz") or {}).get("shutdownGracePeriod", "0s")
        return {
            "active": params.active,
            "lock": bool(target.facts.get("kubelet-inhibitor")),
            "unit": target.facts.get("kubelet-unit") or "kubelet.service",
            "patience": parse_duration(grace) + _LOCK_GRACE_SECONDS,
        }

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (_emit(memory["active"]),)

    def undo(self, memory: UndoState) -> Undo:
        """A node that is Ready heard the cancellation; a lock that is lost comes back with a kubelet restart."""
        ready = FactCheck("node-ready", True)
        steps = [UndoStep(_emit(False), unless=ready)]
        proof = [ready]
        if memory["lock"]:
            lock = FactCheck("kubelet-inhibitor", True)
            restart = HostCommand(("systemctl", "restart", memory["unit"]))
            steps.append(UndoStep(restart, unless=lock, grace_seconds=memory["patience"]))
            proof.append(lock)
        return Undo(tuple(steps), tuple(proof))


ACTION = PrepareForShutdown()
