"""The kubelet restarted by systemd: it forgets a pending shutdown, releases its inhibitor lock and takes a new one."""

from __future__ import annotations

from msgspec import structs

from chaos.core.action import Action, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind
from chaos.core.command import Command, Delivery
from chaos.core.evidence import (
    exit_code_zero,
    is_number,
    last_reading_before,
    no_proof,
    power_lost,
    readings_after,
    returned_entries,
)
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._process_proof import PROCESS_REPLACED
from chaos.faults.actions._service import KubeletState, canceled_job, capture_kubelet_state, restore_kubelet, systemctl

_GRACE_SECONDS = 5.0


def _check_canceled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by systemd, which canceled the restart when the shutdown went on; weakly if no process was read then.

    The restart stops the kubelet first, that releases the lock, and logind's shutdown takes the place of the job.
    """
    before = last_reading_before(timeline, step, "kubelet-process")
    for entry, record in returned_entries(timeline, step):
        if record.delivery != Delivery.ANSWERED or not str(record.evidence.get("stderr", "")).endswith(" canceled."):
            continue
        because = "systemd canceled the restart, as the machine shuts down: the kubelet was stopped and not started"
        later = [r for r in readings_after(timeline, step, "kubelet-process") if r.t > entry.t]
        if before is not None and any(reading.value == before.value for reading in later):
            return no_proof(f"systemd canceled the restart, and the kubelet of {step.node} still ran afterwards")
        gone = next((reading for reading in later if reading.value == {}), None)
        return ProofResult(ProofStatus.PROVEN, because, (entry.seq, *((gone.seq,) if gone else ())), weak=gone is None)
    return no_proof("systemd did not cancel the restart")


def _check_accepted(timeline: Timeline, step: StepRun) -> ProofResult:
    """For a machine that goes down before its processes can be read again, as inside a shutdown."""
    before = last_reading_before(timeline, step, "kubelet-process")
    for reading in readings_after(timeline, step, "kubelet-process"):
        same = before is not None and reading.value == before.value and reading.t > (step.returned or step.begin)
        if same or reading.t > step.begin + _GRACE_SECONDS:
            return no_proof(f"the kubelet of {step.node} was read afterwards")
    return _check_started(timeline, step) or exit_code_zero(timeline, step)


def _check_started(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """Proven by a host that began the command and went down without a response: without the lock nothing delays it."""
    down = power_lost(timeline, step)
    for entry, record in returned_entries(timeline, step) if down.status is ProofStatus.PROVEN else ():
        if record.delivery == Delivery.LOST and is_number(record.evidence.get("began")):
            because = f"the host began it and stopped responding; {down.because}"
            return ProofResult(ProofStatus.PROVEN, because, (entry.seq, *down.evidence), weak=True)
    return None


class KubeletRestart(Action[NoParams, KubeletState]):
    """Inside the window of a shutdown the restart releases the lock, and the machine goes down at once (facts 1.7)."""

    name = "kubelet-restart"
    summary = "restart the kubelet"
    example = "{name: restart, action: kubelet-restart, target: victim}"
    params = NoParams
    state = KubeletState
    undo_kind = UndoKind.SELF_RESTORING
    keeps_pods_running = True
    proofs = (
        PROCESS_REPLACED,
        Proof("canceled-by-shutdown", _check_canceled),
        Proof("accepted", _check_accepted, weak=True),
    )
    proof_facts = ("kubelet-state", "kubelet-process", "inhibitor-kubelet")

    def prepare(self, target: Target, params: NoParams) -> KubeletState:  # noqa: ARG002 - no parameters
        return capture_kubelet_state(target, "the step restarts the kubelet's unit")

    def inject(self, state: KubeletState) -> tuple[Command, ...]:
        restart = systemctl("restart", state.unit)
        return (structs.replace(restart, undecided=(canceled_job(state.unit),)),)

    def undo(self, state: KubeletState) -> Undo:
        return restore_kubelet(state)


ACTION = KubeletRestart()
