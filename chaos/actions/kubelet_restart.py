"""The kubelet restarted by systemd: its memory of a shutdown is lost, its lock is let go and taken anew."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import kubelet_memory, kubelet_runs, systemctl
from chaos.model.action import Action, Finding, Memory, Proof, Shown, StepRun, Target, Undo, UndoKind
from chaos.model.command import LOST, Command
from chaos.model.evidence import (
    answered_zero,
    is_number,
    last_before,
    not_shown,
    readings_after,
    returned_lines,
    same_boot,
    went_off,
)
from chaos.model.experiment import Model
from chaos.model.timeline import Timeline

_SOON = 5.0  # seconds


class Params(Model):
    """None."""


def _another_process(timeline: Timeline, step: StepRun) -> Finding:
    """Its process ID differs from the one before the step."""
    before = last_before(timeline, step, "kubelet-process")
    old = before.value.get("pid") if before and isinstance(before.value, dict) else None
    for reading in readings_after(timeline, step, "kubelet-process"):
        new = reading.value.get("pid") if isinstance(reading.value, dict) else None
        if before and old and new and new != old and same_boot(timeline, step, reading):
            because = f"the kubelet of {step.node} is another process ({old}, then {new})"
            return Finding(Shown.PROVEN, because, (before.seq, reading.seq))
    return not_shown(f"no new process of the kubelet of {step.node} was seen")


def _accepted(timeline: Timeline, step: StepRun) -> Finding:
    """For a machine that goes down before its processes can be looked at twice, as it does inside a shutdown."""
    before = last_before(timeline, step, "kubelet-process")
    for reading in readings_after(timeline, step, "kubelet-process"):
        same = before is not None and reading.value == before.value and reading.t > (step.returned or step.begin)
        if same or reading.t > step.begin + _SOON:
            return not_shown(f"the kubelet of {step.node} was looked at afterwards")
    return _begun(timeline, step) or answered_zero(timeline, step)


def _begun(timeline: Timeline, step: StepRun) -> Finding | None:
    """The host told that it began it, and went down before it could tell more: without the lock nothing waits."""
    down = went_off(timeline, step)
    for entry, record in returned_lines(timeline, step) if down.shown is Shown.PROVEN else ():
        if record.delivery == LOST and is_number(record.evidence.get("began")):
            because = f"the host began it and answered no more; {down.because}"
            return Finding(Shown.PROVEN, because, (entry.seq, *down.evidence), weak=True)
    return None


class KubeletRestart(Action):
    """Inside the window of a shutdown it drops the lock, and the machine goes down at once (facts 1.7)."""

    name = "kubelet-restart"
    summary = "restart the kubelet"
    example = "{name: restart, action: kubelet-restart, target: victim}"
    params = Params
    undo_kind = UndoKind.SELF_RESTORING
    gentle = True
    proofs = (Proof("another-process", _another_process), Proof("accepted", _accepted, weak=True))
    probes = ("kubelet-state", "kubelet-process", "kubelet-inhibitor")

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        return kubelet_memory(target, "the kubelet's unit is what is restarted")

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (systemctl("restart", memory["unit"]),)

    def undo(self, memory: Memory) -> Undo:
        return kubelet_runs(memory)


ACTION = KubeletRestart()
