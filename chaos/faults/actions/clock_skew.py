"""A host clock that is set wrong, with its synchronisation stopped."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct
from pydantic import AfterValidator, Field

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
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import is_number, no_proof, readings_after
from chaos.core.field_types import DurationText, Model
from chaos.core.node_mark import Tag, UnitName
from chaos.core.timeline import Timeline
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED
from chaos.faults.readings.machine import BOOT_TIME_SCRIPT, MARK_FILE

_MAX_SECONDS = 600.0
_SET_SCRIPT = (
    f"test -e {MARK_FILE} || {{ {BOOT_TIME_SCRIPT} > {MARK_FILE}.new && mv {MARK_FILE}.new {MARK_FILE}; }}"
    ' && date --set="$1 seconds"'
)
# Computed from the machine's uptime: correct when run twice, and after other changes of the clock.
_TRUE_TIME_SCRIPT = f"cat {MARK_FILE} /proc/uptime | awk '{{ now += $1 }} END {{ printf \"@%.2f\", now }}'"
_RESTORE_SCRIPT = f'! test -e {MARK_FILE} || {{ date --set="$({_TRUE_TIME_SCRIPT})" && rm {MARK_FILE}; }}'


def _validate_bounds(text: str) -> str:
    if not 2 <= parse_duration(text) <= _MAX_SECONDS or parse_duration(text) % 1:
        raise ValueError(f"{text!r} is not a whole number of seconds from 2s to {_MAX_SECONDS:g}s")
    return text


class Params(Model):
    """How far the clock is set wrong, and in which direction."""

    by: Annotated[DurationText, AfterValidator(_validate_bounds)] = Field(
        "60s", description="How far the clock is off, from 2s to 10m."
    )
    direction: Literal["ahead", "behind"] = Field(
        "ahead", description="Whether the clock is set ahead of the right time or behind it."
    )


def signed_seconds(params: Params) -> int:
    """Seconds by which the clock is set, negative for behind."""
    return int(parse_duration(params.by)) * (1 if params.direction == "ahead" else -1)


def _check_skew(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by the difference to the machine's uptime, which does not depend on the clock."""
    for reading in readings_after(timeline, step, "clock-skew"):
        if is_number(reading.value) and abs(reading.value) > 1:
            because = f"the clock of {step.node} was {reading.value:+d} s wrong"
            return ProofResult(ProofStatus.PROVEN, because, (reading.seq,))
    return no_proof(f"the clock of {step.node} was not seen to be wrong")


CLOCK_IS_WRONG = Proof("clock-skew", _check_skew)


class ClockState(Struct, frozen=True):
    """``skew`` in seconds; the unit that synchronises the clock, and whether it was active; the failsafe timer."""

    skew: int
    sync_unit: UnitName
    sync_active: bool
    tag: Tag
    seconds: float


def _prepare(target: Target, params: Params) -> ClockState:
    if target.require_fact("shared-kernel", "others' clock must not be set"):
        raise Unsupported(
            f"{target.node} is a container: it shares its machine's clock", hint="use a dedicated machine"
        )
    timers = target.require_fact("failsafe-timers", "a clock must not be set beside them")
    if timers or target.require_fact("scheduled-shutdown", "it depends on the clock") != NO_SHUTDOWN_SCHEDULED:
        found = ", ".join(timers) or "a shutdown that is scheduled"
        raise Unsupported(f"{target.node}: there is {found}, beside which the clock is not set", hint="undo it first")
    require_right_clock(target)
    unit = target.require_fact("time-sync-unit", "it would correct the clock at once, and must do so afterwards")
    active = target.require_fact("time-sync-state", "undo restores it") == "active"
    return ClockState(signed_seconds(params), unit, active, target.tag, target.max_duration)


def require_right_clock(target: Target) -> None:
    """Raises Unsupported if the clock is set wrong already."""
    if target.require_fact("clock-skew", "the clock must be right before"):
        raise Unsupported(
            f"{target.node}: its clock is set wrong already", hint="run `nodefall undo` for the run that did it"
        )


def _program(state: ClockState) -> Program:
    right, synced = FactCheck("clock-skew", 0), FactCheck("time-sync-state", "active")
    steps = [UndoStep(HostCommand(("sh", "-c", _RESTORE_SCRIPT)), unless=right)]
    script = _RESTORE_SCRIPT
    if state.sync_active:
        steps.append(UndoStep(HostCommand(("systemctl", "start", state.sync_unit)), unless=synced))
        script += f"; systemctl start {state.sync_unit}"
    stop = HostCommand(("systemctl", "stop", state.sync_unit))
    return Program(
        (stop, HostCommand(("sh", "-c", _SET_SCRIPT, "nodefall", f"{state.skew:+d}"))),
        Undo(tuple(steps), (right, *((synced,) if state.sync_active else ()), NODE_READY)),
        failsafe=failsafe_timer(state, "sh", "-c", script),
    )


ACTION = Action(
    name="clock-skew",
    summary="set the host's clock wrong, and stop its time synchronization",
    description="""
    The clock jumps by ``by`` at once. The host then evaluates Leases, certificates and tokens with a wrong clock.

    Relative timers of PID 1 (OnActiveSec, nodefall's failsafe timers) use another clock and do not move; calendar
    timers (OnCalendar, cron) fire at once or late. The action is refused while a shutdown is scheduled, because
    logind uses the same clock. It is also refused beside a step that arms a timer on the same node, because the start
    time of PID 1, which identifies a boot, moves with the clock.
    """,
    example="{name: skew, action: clock-skew, target: victim, with: {by: 60s, direction: ahead}}",
    params=Params,
    state=ClockState,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    exclusive_timer_reason="it sets the clock, which identifies boots and starts logind's scheduled shutdown",
    proofs=(CLOCK_IS_WRONG,),
    needs=Needs(
        ("shared-kernel", "time-sync-unit", "time-sync-state", "clock-skew"), ("clock-skew", "time-sync-state")
    ),
    prepare=_prepare,
    program=_program,
)
