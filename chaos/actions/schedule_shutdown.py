"""A shutdown scheduled with logind for later; until its time comes the kubelet hears nothing of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from chaos.actions._machine import POWER_ON, REPORTS, come_back, hold, need_power, runs_on, up, way_back
from chaos.facts.login1 import NOTHING_SCHEDULED
from chaos.model.action import Action, Check, Memory, SelfHeal, Target, Undo, UndoKind, UndoStep
from chaos.model.command import Command, HostCommand
from chaos.model.duration import parse_duration
from chaos.model.evidence import BOOT_IDENTITY, MACHINE_OFF, fact_is
from chaos.model.experiment import DurationText, Model

_IDLE = Check("scheduled-shutdown", NOTHING_SCHEDULED)
CANCEL_AHEAD = 5.0  # seconds before its time at which the planted timer cancels the shutdown


def _whole_minutes(text: str) -> str:
    if parse_duration(text) % 60 or parse_duration(text) < 60:
        raise ValueError(f"{text!r} is not a whole number of minutes; shutdown(8) counts in minutes")
    return text


def _unit(memory: Memory) -> str:
    return f"nodefall-{memory['tag']}"


class Params(Model):
    """When; and whether it may really come to that."""

    in_: Annotated[DurationText, AfterValidator(_whole_minutes)] = Field("60s", alias="in")
    fires: bool = Field(False, description="let it happen: do not plant a timer on the host that cancels it in time")


class ScheduleShutdown(Action):
    """``shutdown -P +N``, after planting a timer of PID 1 that cancels it, should nodefall be gone by then."""

    name = "schedule-shutdown"
    summary = "schedule a power-off; unless fires is true, the host cancels it by itself 5s before"
    example = "{name: schedule, action: schedule-shutdown, target: victim, with: {in: 60s}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    asks_logind = True
    cuts_line = True
    takes_down = True
    proofs = (
        fact_is("scheduled-shutdown", lambda v: '"poweroff"' in str(v), "logind has it scheduled"),
        MACHINE_OFF,
        BOOT_IDENTITY,
    )
    probes = ("scheduled-shutdown", "machine", "pid1-start", "boot-id")
    facts = REPORTS

    def prepare(self, target: Target, params: Params) -> Memory:
        if params.fires:
            need_power(
                target,
                "could not be powered on again after the shutdown",
                hint="give its host a power control in the inventory, or leave fires out",
            )
        seconds = parse_duration(params.in_)
        return {"seconds": seconds, "fires": params.fires, "power": way_back(target), "tag": target.tag}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        ahead = hold(memory["power"]) if memory["fires"] else ()
        return (*ahead, HostCommand(("shutdown", "-P", f"+{int(memory['seconds'] // 60)}")))

    def self_heal(self, memory: Memory) -> SelfHeal | None:
        if memory["fires"]:
            return None
        return SelfHeal(_unit(memory), memory["seconds"] - CANCEL_AHEAD, ("shutdown", "-c"))

    def undo(self, memory: Memory) -> Undo:
        cancel = UndoStep(HostCommand(("shutdown", "-c")), unless=_IDLE)
        if memory["fires"]:
            return Undo((*come_back(memory["power"]), cancel), (_IDLE, *up(memory["power"])))
        on = (POWER_ON,) if memory["power"]["tells"] else ()
        return Undo((*on, cancel), (_IDLE, *runs_on(memory["power"]["reports"])), disarm=_unit(memory))


ACTION = ScheduleShutdown()
