"""The clock set wrong, and its synchronisation stopped."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from chaos.facts.clock_skew import BOOTED, MARK
from chaos.facts.login1 import NOTHING_SCHEDULED
from chaos.model.action import (
    Action,
    Check,
    Finding,
    Memory,
    Proof,
    SelfHeal,
    Shown,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
)
from chaos.model.command import Command, HostCommand
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.evidence import is_number, not_shown, readings_after
from chaos.model.experiment import DurationText, Model
from chaos.model.timeline import Timeline

_MOST = 600.0
_SET = f'test -e {MARK} || {{ {BOOTED} > {MARK}.new && mv {MARK}.new {MARK}; }} && date --set="$1 seconds"'
# By the machine's own uptime, so that it may be done twice, and whatever else has happened to the clock.
_NOW = f"cat {MARK} /proc/uptime | awk '{{ now += $1 }} END {{ printf \"@%.2f\", now }}'"
_BACK = f'! test -e {MARK} || {{ date --set="$({_NOW})" && rm {MARK}; }}'


def _bounded(text: str) -> str:
    if not 2 <= parse_duration(text) <= _MOST or parse_duration(text) % 1:
        raise ValueError(f"{text!r} is not a whole number of seconds from 2s to {_MOST:g}s")
    return text


class Params(Model):
    """How far, and which way."""

    by: Annotated[DurationText, AfterValidator(_bounded)] = Field(
        "60s", description="how far the clock is set wrong, 2s to 10m"
    )
    direction: Literal["ahead", "behind"] = Field("ahead", description="ahead of the right time, or behind it")


def _wrong(timeline: Timeline, step: StepRun) -> Finding:
    """Against the machine's uptime, which no clock moves."""
    for reading in readings_after(timeline, step, "clock-skew"):
        if is_number(reading.value) and abs(reading.value) > 1:
            because = f"the clock of {step.node} was {reading.value:+d}s wrong"
            return Finding(Shown.PROVEN, because, (reading.seq,))
    return not_shown(f"the clock of {step.node} was not seen to be wrong")


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
    gentle = True
    alone = "it sets the clock, by which boots are told apart and logind shuts down"
    proofs = (Proof("clock-skew", _wrong),)
    probes = ("clock-skew", "time-sync-state")
    facts = ("shared-kernel", "time-sync-unit", "time-sync-state", "clock-skew")

    def prepare(self, target: Target, params: Params) -> Memory:
        if target.need("shared-kernel", "others' clock must not be set"):
            raise Unsupported(
                f"{target.node} is a container: its clock is others' too", hint="use a machine of its own"
            )
        timers = target.need("planted-timers", "a clock must not be set beside them")
        if timers or target.need("scheduled-shutdown", "it goes by the clock") != NOTHING_SCHEDULED:
            found = ", ".join(timers) or "a shutdown that is scheduled"
            raise Unsupported(
                f"{target.node}: there is {found}, beside which the clock is not set", hint="undo it first"
            )
        if target.need("clock-skew", "it must be right before"):
            raise Unsupported(
                f"{target.node}: its clock is set wrong already", hint="`nodefall undo` the run that did it"
            )
        unit = target.need("time-sync-unit", "it would set the clock right again at once, and must afterwards")
        active = target.need("time-sync-state", "it must be as it was afterwards") == "active"
        seconds = int(parse_duration(params.by)) * (1 if params.direction == "ahead" else -1)
        return {"by": seconds, "unit": unit, "active": active, "tag": target.tag, "seconds": target.max_duration}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        stop = HostCommand(("systemctl", "stop", memory["unit"]))
        return (stop, HostCommand(("sh", "-c", _SET, "nodefall", f"{memory['by']:+d}")))

    def self_heal(self, memory: Memory) -> SelfHeal:
        start = f"; systemctl start {memory['unit']}" if memory["active"] else ""
        return SelfHeal(f"nodefall-{memory['tag']}", memory["seconds"], ("sh", "-c", _BACK + start))

    def undo(self, memory: Memory) -> Undo:
        right = Check("clock-skew", 0)
        steps = [UndoStep(HostCommand(("sh", "-c", _BACK)), unless=right)]
        proof = [right, Check("node-ready", True)]
        if memory["active"]:
            synced = Check("time-sync-state", "active")
            steps.append(UndoStep(HostCommand(("systemctl", "start", memory["unit"])), unless=synced))
            proof.insert(1, synced)
        return Undo(tuple(steps), tuple(proof), disarm=f"nodefall-{memory['tag']}")


ACTION = ClockSkew()
