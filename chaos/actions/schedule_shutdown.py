"""A shutdown scheduled with logind for later; until its time comes the kubelet hears nothing of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from chaos.actions._machine import (
    KUBELET_REPORTING_FACTS,
    POWER_ON,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    kubelet_reporting_checks,
    power_on_steps,
    require_power_control,
)
from chaos.facts.login1 import NO_SHUTDOWN_SCHEDULED
from chaos.model.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind, UndoState, UndoStep
from chaos.model.command import Command, HostCommand
from chaos.model.duration import parse_duration
from chaos.model.evidence import BOOT_IDENTITY, MACHINE_OFF, fact_is
from chaos.model.experiment import DurationText, Model

_NO_SHUTDOWN_SCHEDULED = FactCheck("scheduled-shutdown", NO_SHUTDOWN_SCHEDULED)
CANCEL_LEAD_SECONDS = 5.0  # seconds before its time at which the planted timer cancels the shutdown


def _validate_whole_minutes(text: str) -> str:
    if parse_duration(text) % 60 or parse_duration(text) < 60:
        raise ValueError(f"{text!r} is not a whole number of minutes; shutdown(8) counts in minutes")
    return text


def _timer_unit(memory: UndoState) -> str:
    return f"nodefall-{memory['tag']}"


class Params(Model):
    """When; and whether it may really come to that."""

    in_: Annotated[DurationText, AfterValidator(_validate_whole_minutes)] = Field("60s", alias="in")
    fires: bool = Field(False, description="let it happen: do not plant a timer on the host that cancels it in time")


class ScheduleShutdown(Action):
    """``shutdown -P +N``, after planting a timer of PID 1 that cancels it, should nodefall be gone by then."""

    name = "schedule-shutdown"
    summary = "schedule a power-off; unless fires is true, the host cancels it by itself 5s before"
    example = "{name: schedule, action: schedule-shutdown, target: victim, with: {in: 60s}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    requires_logind = True
    may_disconnect = True
    takes_down = True
    proofs = (
        fact_is("scheduled-shutdown", lambda v: '"poweroff"' in str(v), "logind has it scheduled"),
        MACHINE_OFF,
        BOOT_IDENTITY,
    )
    proof_facts = ("scheduled-shutdown", "machine", "pid1-start", "boot-id")
    facts = KUBELET_REPORTING_FACTS

    def prepare(self, target: Target, params: Params) -> UndoState:
        if params.fires:
            require_power_control(
                target,
                "could not be powered on again after the shutdown",
                hint="give its host a power control in the inventory, or leave fires out",
            )
        seconds = parse_duration(params.in_)
        return {"seconds": seconds, "fires": params.fires, "power": capture_power_state(target), "tag": target.tag}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        ahead = disable_auto_restart(memory["power"]) if memory["fires"] else ()
        return (*ahead, HostCommand(("shutdown", "-P", f"+{int(memory['seconds'] // 60)}")))

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer | None:
        if memory["fires"]:
            return None
        return FailsafeTimer(_timer_unit(memory), memory["seconds"] - CANCEL_LEAD_SECONDS, ("shutdown", "-c"))

    def undo(self, memory: UndoState) -> Undo:
        cancel = UndoStep(HostCommand(("shutdown", "-c")), unless=_NO_SHUTDOWN_SCHEDULED)
        if memory["fires"]:
            return Undo(
                (*power_on_steps(memory["power"]), cancel), (_NO_SHUTDOWN_SCHEDULED, *is_up_checks(memory["power"]))
            )
        on = (POWER_ON,) if memory["power"]["tells"] else ()
        return Undo(
            (*on, cancel),
            (_NO_SHUTDOWN_SCHEDULED, *kubelet_reporting_checks(memory["power"]["reports"])),
            disarm=_timer_unit(memory),
        )


ACTION = ScheduleShutdown()
