"""Proofs that several actions share: state of a machine in the timeline after a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from chaos.core.action import Proof, ProofResult, ProofStatus, StepRun
from chaos.core.command import Delivery
from chaos.core.duration import parse_duration
from chaos.core.kube import node_condition
from chaos.core.recording import FAILSAFE, ActionPhase, ActionRecord
from chaos.core.timeline import Entry, Fact, Timeline

BOOT_ACTIONS = ("hard-reboot", "kernel-crash", "power-button", "power-cut", "poweroff", "reboot", "schedule-shutdown")
CANCEL_ACTIONS = ("cancel-shutdown", "cancel-shutdown-in-flight")
SAME_BOOT_SECONDS = 2  # pid1-start is rounded twice
# In a recording that does not say when the failsafe timer fires: by how much earlier than the step's begin plus its
# duration that may be. The timers of all hosts are armed before the step begins on any.
_ARMING_SECONDS = 10.0


def no_proof(because: str) -> ProofResult:
    """Neither proven nor disproven."""
    return ProofResult(ProofStatus.UNPROVEN, because)


def readings_after(timeline: Timeline, step: StepRun, fact: str, until: float | None = None) -> list[Fact]:
    """Readings of a host fact since the step began, including the readings in its "proved" entries."""
    end, last = (step.until, step.until_seq) if until is None else (until, None)
    readings = [
        r
        for r in timeline.readings(step.node, fact)
        if step.begin <= r.began and r.t <= end and (last is None or r.seq < last)
    ]
    for entry, record in step_entries(timeline, step, ActionPhase.PROVED):
        if entry.t <= end and fact in record.evidence:
            readings.append(Fact(entry.t, entry.seq, record.evidence[fact]))
    return sorted(readings, key=lambda r: r.t)


def all_readings(timeline: Timeline, node: str, fact: str) -> list[Fact]:
    """Readings of a host fact, including the readings in "proved" entries of any action on the node."""
    proved = (
        Fact(entry.t, entry.seq, record.evidence[fact])
        for entry, record in timeline.actions
        if entry.node == node and record.phase == ActionPhase.PROVED and fact in record.evidence
    )
    return sorted([*timeline.readings(node, fact), *proved], key=lambda r: r.t)


def within_duration(step: StepRun) -> StepRun:
    """The step until the host may end the effect by itself: when the failsafe timer fires, at the earliest."""
    fires_at = step.phases.get(FAILSAFE)
    if isinstance(fires_at, int | float):
        return replace(step, until=min(step.until, fires_at))
    if not (text := step.params.get("duration")):
        return step
    duration = parse_duration(str(text))
    return replace(step, until=min(step.until, step.begin + max(duration - _ARMING_SECONDS, duration / 2)))


def step_entries(timeline: Timeline, step: StepRun, phase: str) -> list[tuple[Entry, ActionRecord]]:
    """The step's action entries of one phase, matched by node, action, time and the parameters of the step."""
    return [
        (entry, record)
        for entry, record in timeline.actions
        if record.phase == phase
        and entry.node == step.node
        and entry.type == step.action
        and entry.t >= step.begin
        and all(record.params.get(name, value) == value for name, value in step.params.items())
    ]


def returned_entries(timeline: Timeline, step: StepRun) -> list[tuple[Entry, ActionRecord]]:
    """The step's own "returned" entries; another step of the same action may have returned later."""
    return [pair for pair in step_entries(timeline, step, ActionPhase.RETURNED) if pair[0].t == step.returned]


def last_reading_before(timeline: Timeline, step: StepRun, fact: str) -> Fact | None:
    """The last reading of a host fact before the step began."""
    before = [r for r in timeline.readings(step.node, fact) if r.t <= step.begin]
    return before[-1] if before else None


def boot_changed(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if the boot identity changed: boot ID in the Node object and on the host, or start of PID 1 there.

    The change is visible only when the machine is back, so readings after ``until`` count too, up to the start of the
    next step on the node that boots the machine.
    """
    begins = (
        e.t
        for e, r in timeline.actions
        if e.node == step.node and r.phase == ActionPhase.BEGIN and e.type in BOOT_ACTIONS
    )
    end = min((t for t in begins if t > step.begin), default=timeline.end)
    history = timeline.nodes.get(step.node)
    before = history.at(step.begin) if history else None
    if history and before and before.object.status and before.object.status.node_info:
        boot_id = before.object.status.node_info.boot_id
        for version in history:
            info = version.object.status.node_info if version.object.status else None
            if step.begin < version.t <= end and info and boot_id and info.boot_id not in ("", boot_id):
                return ProofResult(ProofStatus.PROVEN, f"the boot ID of {step.node} changed", (before.seq, version.seq))
    if seqs := _boot_id_change(timeline, step, end):
        return ProofResult(ProofStatus.PROVEN, f"the boot ID of {step.node} changed", seqs)
    start = last_reading_before(timeline, step, "pid1-start")
    for later in readings_after(timeline, step, "pid1-start", end):
        if (
            start
            and is_number(start.value)
            and is_number(later.value)
            and later.value > start.value + SAME_BOOT_SECONDS
        ):
            return ProofResult(ProofStatus.PROVEN, f"PID 1 of {step.node} was started again", (start.seq, later.seq))
    return no_proof(f"no new boot identity of {step.node} was observed")


def _boot_id_change(timeline: Timeline, step: StepRun, until: float | None = None) -> tuple[int, ...]:
    """The last reading of the host's boot ID before the step and the first other one after it; () without a change."""
    before = last_reading_before(timeline, step, "boot-id")
    if before is None:
        return ()
    after = readings_after(timeline, step, "boot-id", until)
    return next(((before.seq, later.seq) for later in after if later.value != before.value), ())


def is_number(value: Any) -> bool:
    """Whether a reading, which may come from another recorder, can be compared with a time."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def exit_code_zero(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven, weakly, if the host accepted the command."""
    for entry, record in step_entries(timeline, step, ActionPhase.RETURNED):
        if entry.t == step.returned and record.delivery == Delivery.ANSWERED and record.exit == 0:
            return ProofResult(
                ProofStatus.PROVEN, "the host accepted the command (exit code 0)", (entry.seq,), weak=True
            )
    return no_proof("the host did not answer with exit code 0")


def fact_is(fact: str, accept: Callable[[Any], bool], what: str) -> Proof:
    """Proven by a reading of ``fact`` that ``accept`` accepts, else disproven by the last reading."""

    def check(timeline: Timeline, step: StepRun) -> ProofResult:
        readings = readings_after(timeline, step, fact)
        accepted = next((r for r in readings if accept(r.value)), None)
        if accepted:
            return ProofResult(ProofStatus.PROVEN, f"{what} ({fact} = {accepted.value})", (accepted.seq,))
        if readings:
            return ProofResult(
                ProofStatus.DISPROVEN, f"disproven by {fact} = {readings[-1].value}", (readings[-1].seq,)
            )
        return no_proof(f"{fact} was not read on {step.node} after the step")

    return Proof(fact, check)


def holds_until(fact: str, accept: Callable[[Any], bool], what: str) -> Proof:
    """As :func:`fact_is`, but disproven by a later reading that is not accepted: the effect ended too early."""
    started = fact_is(fact, accept, what)

    def check(timeline: Timeline, step: StepRun) -> ProofResult:
        result = started.check(timeline, step)
        if result.status is not ProofStatus.PROVEN:
            return result
        readings = readings_after(timeline, step, fact)
        accepted = next(r for r in readings if accept(r.value))
        ended = next((r for r in readings if r.t > accepted.t and not accept(r.value)), None)
        if ended is None:
            return result
        because = f"the effect ended {ended.t - step.begin:.1f} s after the step: {fact} = {ended.value}"
        return ProofResult(ProofStatus.DISPROVEN, because, (accepted.seq, ended.seq))

    return Proof(fact, check)


def same_boot(timeline: Timeline, step: StepRun, reading: Fact) -> bool:
    """Whether the machine did not boot between the step and the reading, by the next reading of PID 1's start.

    Compares the boot ID if there is no PID 1. True if neither was read.
    """
    before = last_reading_before(timeline, step, "pid1-start")
    if before is None:
        return _same_boot_id(timeline, step, reading)
    later = next((r for r in timeline.readings(step.node, "pid1-start") if r.t >= reading.t), None)
    if not is_number(before.value):
        return True
    return later is not None and is_number(later.value) and abs(later.value - before.value) <= SAME_BOOT_SECONDS


def _same_boot_id(timeline: Timeline, step: StepRun, reading: Fact) -> bool:
    before = last_reading_before(timeline, step, "boot-id")
    later = next((r for r in timeline.readings(step.node, "boot-id") if r.t >= reading.t), None)
    return before is None or (later is not None and later.value == before.value)


def boot_seen(timeline: Timeline, step: StepRun, what: str) -> ProofResult | None:
    """Disproven if the machine booted after the step and before the next one; None otherwise."""
    if seqs := _boot_id_change(timeline, step):
        return ProofResult(ProofStatus.DISPROVEN, f"{step.node} booted again: {what}", seqs)
    before = last_reading_before(timeline, step, "pid1-start")
    for later in readings_after(timeline, step, "pid1-start"):
        if before and is_number(before.value) and is_number(later.value) and not same_boot(timeline, step, later):
            return ProofResult(ProofStatus.DISPROVEN, f"{step.node} booted again: {what}", (before.seq, later.seq))
    return None


def shutdown_cancelled(timeline: Timeline, step: StepRun) -> ProofResult:
    """A shutdown that a later step cancelled: proven if the kubelet had announced the shutdown before."""
    cancelled = any(
        entry.type in CANCEL_ACTIONS
        and (entry.node, record.phase, entry.t) == (step.node, ActionPhase.BEGIN, step.until)
        for entry, record in timeline.actions
    )
    for version in (timeline.nodes.get(step.node) or ()) if cancelled else ():
        ready = node_condition(version.object, "Ready")
        if step.begin <= version.t <= step.until and ready and "node is shutting down" in (ready.message or ""):
            delay = version.t - step.begin
            because = f"{step.node} was shutting down {delay:.1f} s after the step, until that was cancelled"
            return ProofResult(ProofStatus.PROVEN, because, (version.seq,))
    return no_proof(f"no shutdown of {step.node} was observed before it was cancelled")


BOOT_IDENTITY = Proof("boot-identity", boot_changed)
SHUTDOWN_CANCELLED = Proof("announced-then-cancelled", shutdown_cancelled)
EXIT_CODE_ZERO = Proof("exit-code", exit_code_zero, weak=True)
