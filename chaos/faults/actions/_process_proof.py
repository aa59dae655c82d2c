"""Proof of a restart by the process ID of the kubelet."""

from __future__ import annotations

from chaos.core.action import Proof, ProofResult, ProofStatus, StepRun
from chaos.core.evidence import last_reading_before, no_proof, readings_after, same_boot
from chaos.core.timeline import Timeline


def _check_process_replaced(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a process ID that differs from the one before the step."""
    before = last_reading_before(timeline, step, "kubelet-process")
    old = before.value.get("pid") if before and isinstance(before.value, dict) else None
    for reading in readings_after(timeline, step, "kubelet-process"):
        new = reading.value.get("pid") if isinstance(reading.value, dict) else None
        if before and old and new and new != old and same_boot(timeline, step, reading):
            because = f"the kubelet of {step.node} is another process ({old}, then {new})"
            return ProofResult(ProofStatus.PROVEN, because, (before.seq, reading.seq))
    return no_proof(f"no new process of the kubelet of {step.node} was seen")


PROCESS_REPLACED = Proof("another-process", _check_process_replaced)
