"""The kubelet restarted by systemd: its memory of a shutdown is lost, its lock is let go and taken anew."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import capture_kubelet_state, restore_kubelet, systemctl
from chaos.model.action import Action, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.command import LOST, Command
from chaos.model.evidence import (
    exit_code_zero,
    is_number,
    last_reading_before,
    no_proof,
    power_lost,
    readings_after,
    returned_entries,
    same_boot,
)
from chaos.model.experiment import Model
from chaos.model.timeline import Timeline

_GRACE_SECONDS = 5.0  # seconds


class Params(Model):
    """None."""


def _check_process_replaced(timeline: Timeline, step: StepRun) -> ProofResult:
    """Its process ID differs from the one before the step."""
    before = last_reading_before(timeline, step, "kubelet-process")
    old = before.value.get("pid") if before and isinstance(before.value, dict) else None
    for reading in readings_after(timeline, step, "kubelet-process"):
        new = reading.value.get("pid") if isinstance(reading.value, dict) else None
        if before and old and new and new != old and same_boot(timeline, step, reading):
            because = f"the kubelet of {step.node} is another process ({old}, then {new})"
            return ProofResult(ProofStatus.PROVEN, because, (before.seq, reading.seq))
    return no_proof(f"no new process of the kubelet of {step.node} was seen")


def _check_accepted(timeline: Timeline, step: StepRun) -> ProofResult:
    """For a machine that goes down before its processes can be looked at twice, as it does inside a shutdown."""
    before = last_reading_before(timeline, step, "kubelet-process")
    for reading in readings_after(timeline, step, "kubelet-process"):
        same = before is not None and reading.value == before.value and reading.t > (step.returned or step.begin)
        if same or reading.t > step.begin + _GRACE_SECONDS:
            return no_proof(f"the kubelet of {step.node} was looked at afterwards")
    return _check_started(timeline, step) or exit_code_zero(timeline, step)


def _check_started(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """The host told that it began it, and went down before it could tell more: without the lock nothing waits."""
    down = power_lost(timeline, step)
    for entry, record in returned_entries(timeline, step) if down.status is ProofStatus.PROVEN else ():
        if record.delivery == LOST and is_number(record.evidence.get("began")):
            because = f"the host began it and answered no more; {down.because}"
            return ProofResult(ProofStatus.PROVEN, because, (entry.seq, *down.evidence), weak=True)
    return None


class KubeletRestart(Action):
    """Inside the window of a shutdown it drops the lock, and the machine goes down at once (facts 1.7)."""

    name = "kubelet-restart"
    summary = "restart the kubelet"
    example = "{name: restart, action: kubelet-restart, target: victim}"
    params = Params
    undo_kind = UndoKind.SELF_RESTORING
    keeps_pods_running = True
    proofs = (Proof("another-process", _check_process_replaced), Proof("accepted", _check_accepted, weak=True))
    proof_facts = ("kubelet-state", "kubelet-process", "kubelet-inhibitor")

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        return capture_kubelet_state(target, "the kubelet's unit is what is restarted")

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (systemctl("restart", memory["unit"]),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_kubelet(memory)


ACTION = KubeletRestart()
