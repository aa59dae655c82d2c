"""Planned power-off through logind, which honours delay locks such as the kubelet's; or without logind."""

from __future__ import annotations

from msgspec import Struct
from pydantic import Field

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import BOOT_IDENTITY, MACHINE_OFF, SHUTDOWN_CANCELLED
from chaos.core.field_types import DurationText, Model
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    MachineState,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    kubelet_reporting_checks,
    power_on_steps,
    refuse_unusable_power_control,
    require_power_control,
)

_ALARM_MARGIN_SECONDS = 60.0  # an alarm that fires before the machine is off wakes nothing


class Params(Model):
    """How the machine goes down, and how one without a power control starts again."""

    force: bool = Field(False, description="bypass logind (--force twice): locks are ignored, services are not stopped")
    wake: DurationText = Field("4m", description="without a power control: when the clock (RTC) wakes the machine")


class PoweroffState(Struct, frozen=True):
    """The machine before the power-off; ``alarm`` in seconds, None with a power control."""

    force: bool
    machine: MachineState
    alarm: int | None = None


class Poweroff(Action[Params, PoweroffState]):
    """``systemctl poweroff``; never ``poweroff`` itself, which bypassed logind before systemd 251.

    Without a power control, the alarm of the host's real-time clock wakes the machine.
    """

    name = "poweroff"
    summary = "power the machine off through logind (graceful if the kubelet holds its lock)"
    example = "{name: power-off, action: poweroff, target: victim}"
    params = Params
    state = PoweroffState
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (SHUTDOWN_CANCELLED, MACHINE_OFF, BOOT_IDENTITY)  # a cancelled one leaves the machine on
    proof_facts = (PseudoFact.MACHINE, "pid1-start", "boot-id", "inhibitor-locks")
    facts = ("rtc", "shared-kernel", *KUBELET_REPORTING_FACTS)

    def uses_logind(self, params: Params) -> bool:
        return not params.force

    def prepare(self, target: Target, params: Params) -> PoweroffState:
        if target.power:
            require_power_control(target, "could not be powered on again after poweroff")
            return PoweroffState(params.force, capture_power_state(target))
        alarm = _alarm(target, parse_duration(params.wake))
        return PoweroffState(params.force, capture_power_state(target), alarm)

    def inject(self, state: PoweroffState) -> tuple[Command, ...]:
        if state.alarm is None:
            ahead = disable_auto_restart(state.machine)
        else:
            ahead = (HostCommand(("rtcwake", "-m", "no", "-s", str(state.alarm))),)
        force = ("--force", "--force") if state.force else ()
        return (*ahead, HostCommand(("systemctl", "poweroff", *force), ends_session=True))

    def undo(self, state: PoweroffState) -> Undo:
        """The alarm stays set: a machine that goes down needs it, and it has no effect on one that is up."""
        if state.alarm is not None:
            return Undo((), kubelet_reporting_checks(state.machine.reporting_facts))
        return Undo(power_on_steps(state.machine), is_up_checks(state.machine))


def _alarm(target: Target, seconds: float) -> int:
    """Whole seconds until the alarm. Raises Unsupported where no alarm of a clock can wake the machine."""
    hint = "give its host a power control in the inventory"
    if not target.facts.get("rtc") or target.facts.get("shared-kernel") is not False:
        refuse_unusable_power_control(target)
        why = target.unknown.get("rtc", "it has no real-time clock with an alarm (fact rtc)")
        raise Unsupported(f"{target.node} could not be powered on again after poweroff: {why}", hint=hint)
    grace = target.require_fact("configz", "the alarm must be later than the shutdown").get("shutdownGracePeriod", "0s")
    if seconds < parse_duration(grace) + _ALARM_MARGIN_SECONDS:
        raise Unsupported(
            f"{target.node} may still be shutting down when its clock wakes it after {seconds:g} s "
            f"(shutdownGracePeriod is {grace})",
            hint=f"set wake to {parse_duration(grace) + _ALARM_MARGIN_SECONDS:g}s or more, or {hint}",
        )
    return round(seconds)


ACTION = Poweroff()
