"""A shutdown scheduled with logind; the kubelet is not notified until its time comes."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct
from pydantic import AfterValidator, Field

from chaos.core.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind, UndoStep, failsafe_unit
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.duration import parse_duration
from chaos.core.evidence import BOOT_IDENTITY, MACHINE_OFF, fact_is
from chaos.core.field_types import DurationText, Model
from chaos.core.node_mark import Tag
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    POWER_ON,
    MachineState,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    kubelet_reporting_checks,
    power_on_steps,
    require_power_control,
)
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED

_NO_SHUTDOWN_SCHEDULED = FactCheck("scheduled-shutdown", NO_SHUTDOWN_SCHEDULED)
CANCEL_LEAD_SECONDS = 5.0  # before its time the failsafe timer cancels the shutdown


def _validate_whole_minutes(text: str) -> str:
    if parse_duration(text) % 60 or parse_duration(text) < 60:
        raise ValueError(f"{text!r} is not a whole number of minutes; shutdown(8) counts in minutes")
    return text


class Params(Model):
    """When, and whether the shutdown may happen."""

    in_: Annotated[DurationText, AfterValidator(_validate_whole_minutes)] = Field("60s", alias="in")
    fires: bool = Field(
        False, description="let it happen: do not arm a failsafe timer on the host that cancels it in time"
    )


class ScheduleState(Struct, frozen=True):
    """Seconds until the shutdown, whether it may happen, and the machine before it."""

    seconds: float
    fires: bool
    machine: MachineState
    tag: Tag


class ScheduleShutdown(Action[Params, ScheduleState]):
    """``shutdown -P +N``, after arming a timer of PID 1 that cancels the shutdown if nodefall does not."""

    name = "schedule-shutdown"
    summary = "schedule a power-off; unless fires is true, the host cancels it 5 s before"
    example = "{name: schedule, action: schedule-shutdown, target: victim, with: {in: 60s}}"
    params = Params
    state = ScheduleState
    undo_kind = UndoKind.RESTORES
    requires_logind = True
    may_disconnect = True
    takes_down = True
    proofs = (
        fact_is("scheduled-shutdown", lambda v: '"poweroff"' in str(v), "logind has it scheduled"),
        MACHINE_OFF,
        BOOT_IDENTITY,
    )
    proof_facts = ("scheduled-shutdown", PseudoFact.MACHINE, "pid1-start", "boot-id")
    facts = KUBELET_REPORTING_FACTS

    def prepare(self, target: Target, params: Params) -> ScheduleState:
        if params.fires:
            require_power_control(
                target,
                "could not be powered on again after the shutdown",
                hint="give its host a power control in the inventory, or leave fires out",
            )
        seconds = parse_duration(params.in_)
        return ScheduleState(seconds, params.fires, capture_power_state(target), target.tag)

    def inject(self, state: ScheduleState) -> tuple[Command, ...]:
        ahead = disable_auto_restart(state.machine) if state.fires else ()
        return (*ahead, HostCommand(("shutdown", "-P", f"+{int(state.seconds // 60)}")))

    def failsafe_timer(self, state: ScheduleState) -> FailsafeTimer | None:
        if state.fires:
            return None
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds - CANCEL_LEAD_SECONDS, ("shutdown", "-c"))

    def undo(self, state: ScheduleState) -> Undo:
        cancel = UndoStep(HostCommand(("shutdown", "-c")), unless=_NO_SHUTDOWN_SCHEDULED)
        if state.fires:
            return Undo(
                (*power_on_steps(state.machine), cancel), (_NO_SHUTDOWN_SCHEDULED, *is_up_checks(state.machine))
            )
        on = (POWER_ON,) if state.machine.can_read_power else ()
        return Undo(
            (*on, cancel),
            (_NO_SHUTDOWN_SCHEDULED, *kubelet_reporting_checks(state.machine.reporting_facts)),
            disarm=failsafe_unit(state.tag),
        )


ACTION = ScheduleShutdown()
