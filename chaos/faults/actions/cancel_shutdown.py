"""A scheduled shutdown cancelled before its time."""

from __future__ import annotations

from chaos.core.action import Action, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.evidence import boot_seen, fact_is, last_reading_before, machine_off, readings_after
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import KubeletState, kubelet_state, restore_kubelet_after_cancel
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED, NOT_PREPARING

_NO_SHUTDOWN_IN_PROGRESS = fact_is(
    "preparing-for-shutdown", lambda v: v == NOT_PREPARING, "logind is not shutting down"
)
_NO_SHUTDOWN_SCHEDULED = fact_is(
    "scheduled-shutdown", lambda v: v == NO_SHUTDOWN_SCHEDULED, "logind has nothing scheduled"
)


def _in_flight(timeline: Timeline, step: StepRun) -> str:
    """What to add if the shutdown had begun before it was cancelled."""
    begun = last_reading_before(timeline, step, "preparing-for-shutdown")
    if begun is None or begun.value == NOT_PREPARING:
        return ""
    return "; the shutdown had begun, and systemd cancels that only from version 257 on (cancel-shutdown-in-flight)"


def _check_cancelled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Disproven by a machine that is off; proven by logind's own state."""
    if machine_off(timeline, step).status is ProofStatus.PROVEN:
        off = next(r for r in readings_after(timeline, step, PseudoFact.MACHINE) if r.value == "off")
        because = f"{step.node} still powered off{_in_flight(timeline, step)}"
        return ProofResult(ProofStatus.DISPROVEN, because, (off.seq,))
    if booted := boot_seen(timeline, step, "it still went down"):
        return booted
    preparing = _NO_SHUTDOWN_IN_PROGRESS.check(timeline, step)
    if preparing.status is not ProofStatus.UNPROVEN:
        return preparing
    return _NO_SHUTDOWN_SCHEDULED.check(timeline, step)


class CancelShutdown(Action[NoParams, KubeletState]):
    """``shutdown -c``. Inside the inhibitor window systemd before 257 answers 0 and still goes down."""

    name = "cancel-shutdown"
    summary = "cancel a scheduled shutdown"
    example = "{name: cancel, action: cancel-shutdown, target: victim, after: schedule + 20s}"
    params = NoParams
    state = KubeletState
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    requires_logind = True
    proofs = (Proof("not-shutting-down", _check_cancelled),)
    proof_facts = (
        "preparing-for-shutdown",
        "scheduled-shutdown",
        PseudoFact.MACHINE,
        "inhibitor-locks",
        "inhibitor-kubelet",
    )

    def prepare(self, target: Target, params: NoParams) -> KubeletState:  # noqa: ARG002 - no parameters
        return kubelet_state(target, target.facts.get("kubelet-unit") or "kubelet.service")

    def inject(self, state: KubeletState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("shutdown", "-c")),)

    def undo(self, state: KubeletState) -> Undo:
        """The cancelled shutdown is not scheduled again. Inside the window systemd 257 does not notify the kubelet."""
        return restore_kubelet_after_cancel(state)


ACTION = CancelShutdown()
