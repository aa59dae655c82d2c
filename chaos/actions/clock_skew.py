"""The clock set wrong, and its synchronisation stopped."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from chaos.facts.clock_skew import BOOT_TIME_SCRIPT, MARK_FILE
from chaos.facts.login1 import NO_SHUTDOWN_SCHEDULED
from chaos.model.action import (
    Action,
    FactCheck,
    FailsafeTimer,
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
from chaos.model.evidence import is_number, no_proof, readings_after
from chaos.model.experiment import DurationText, Model
from chaos.model.timeline import Timeline

_MAX_SECONDS = 600.0
_SET_SCRIPT = f'test -e {MARK_FILE} || {{ {BOOT_TIME_SCRIPT} > {MARK_FILE}.new && mv {MARK_FILE}.new {MARK_FILE}; }} && date --set="$1 seconds"'
# By the machine's own uptime, so that it may be done twice, and whatever else has happened to the clock.
_TRUE_TIME_SCRIPT = f"cat {MARK_FILE} /proc/uptime | awk '{{ now += $1 }} END {{ printf \"@%.2f\", now }}'"
_RESTORE_SCRIPT = f'! test -e {MARK_FILE} || {{ date --set="$({_TRUE_TIME_SCRIPT})" && rm {MARK_FILE}; }}'


def _validate_bounds(text: str) -> str:
    if not 2 <= parse_duration(text) <= _MAX_SECONDS or parse_duration(text) % 1:
        raise ValueError(f"{text!r} is not a whole number of seconds from 2s to {_MAX_SECONDS:g}s")
    return text


class Params(Model):
    """How far, and which way."""

    by: Annotated[DurationText, AfterValidator(_validate_bounds)] = Field(
        "60s", description="how far the clock is set wrong, 2s to 10m"
    )
    direction: Literal["ahead", "behind"] = Field("ahead", description="ahead of the right time, or behind it")


def _check_skew(timeline: Timeline, step: StepRun) -> ProofResult:
    """Against the machine's uptime, which no clock moves."""
    for reading in readings_after(timeline, step, "clock-skew"):
        if is_number(reading.value) and abs(reading.value) > 1:
            because = f"the clock of {step.node} was {reading.value:+d}s wrong"
            return ProofResult(ProofStatus.PROVEN, because, (reading.seq,))
    return no_proof(f"the clock of {step.node} was not seen to be wrong")


class ClockSkew(Action):
    """Leases, certificates and tokens are judged by a clock that is wrong.

    Timers of PID 1 that count from now on (OnActiveSec, nodefall's own) go by another clock and are not moved; those
    of the calendar (OnCalendar, cron) fire at once or late. A shutdown that logind has scheduled goes by the clock that
    is set: refused. So is it beside a step that plants a timer on the same node, as the start of PID 1, by which boots
    are told apart, moves with the clock.
    """

    name = "clock-skew"
    summary = "set the host's clock wrong, with its synchronisation stopped"
    example = "{name: skew, action: clock-skew, target: victim, with: {by: 60s, direction: ahead}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    exclusive_timer_reason = "it sets the clock, by which boots are told apart and logind shuts down"
    proofs = (Proof("clock-skew", _check_skew),)
    proof_facts = ("clock-skew", "time-sync-state")
    facts = ("shared-kernel", "time-sync-unit", "time-sync-state", "clock-skew")

    def prepare(self, target: Target, params: Params) -> UndoState:
        if target.require_fact("shared-kernel", "others' clock must not be set"):
            raise Unsupported(
                f"{target.node} is a container: its clock is others' too", hint="use a machine of its own"
            )
        timers = target.require_fact("planted-timers", "a clock must not be set beside them")
        if timers or target.require_fact("scheduled-shutdown", "it goes by the clock") != NO_SHUTDOWN_SCHEDULED:
            found = ", ".join(timers) or "a shutdown that is scheduled"
            raise Unsupported(
                f"{target.node}: there is {found}, beside which the clock is not set", hint="undo it first"
            )
        if target.require_fact("clock-skew", "it must be right before"):
            raise Unsupported(
                f"{target.node}: its clock is set wrong already", hint="`nodefall undo` the run that did it"
            )
        unit = target.require_fact("time-sync-unit", "it would set the clock right again at once, and must afterwards")
        active = target.require_fact("time-sync-state", "it must be as it was afterwards") == "active"
        seconds = int(parse_duration(params.by)) * (1 if params.direction == "ahead" else -1)
        return {"by": seconds, "unit": unit, "active": active, "tag": target.tag, "seconds": target.max_duration}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        stop = HostCommand(("systemctl", "stop", memory["unit"]))
        return (stop, HostCommand(("sh", "-c", _SET_SCRIPT, "nodefall", f"{memory['by']:+d}")))

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer:
        start = f"; systemctl start {memory['unit']}" if memory["active"] else ""
        return FailsafeTimer(f"nodefall-{memory['tag']}", memory["seconds"], ("sh", "-c", _RESTORE_SCRIPT + start))

    def undo(self, memory: UndoState) -> Undo:
        right = FactCheck("clock-skew", 0)
        steps = [UndoStep(HostCommand(("sh", "-c", _RESTORE_SCRIPT)), unless=right)]
        proof = [right, FactCheck("node-ready", True)]
        if memory["active"]:
            synced = FactCheck("time-sync-state", "active")
            steps.append(UndoStep(HostCommand(("systemctl", "start", memory["unit"])), unless=synced))
            proof.insert(1, synced)
        return Undo(tuple(steps), tuple(proof), disarm=f"nodefall-{memory['tag']}")


ACTION = ClockSkew()
