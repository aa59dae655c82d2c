"""Planned power-off through logind, so that delay locks, the kubelet's among them, are honoured; or past it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from chaos.actions._machine import (
    KUBELET_REPORTING_FACTS,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    kubelet_reporting_checks,
    kubelet_reporting_facts,
    power_on_steps,
    require_power_control,
)
from chaos.model.action import Action, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command, HostCommand
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.evidence import BOOT_IDENTITY, MACHINE_OFF, SHUTDOWN_CANCELLED
from chaos.model.experiment import DurationText, Model

_ALARM_MARGIN_SECONDS = 60.0  # seconds: an alarm that goes off before the machine is off wakes nothing


class Params(Model):
    """How it goes down, and how a machine without a power control comes back."""

    force: bool = Field(False, description="past logind (--force twice): no lock is honoured, no service is stopped")
    wake: DurationText = Field("4m", description="without a power control: when the clock (RTC) wakes the machine")


class Poweroff(Action):
    """``systemctl poweroff``; never ``poweroff`` itself, which bypassed logind before systemd 251.

    Without a power control the host's clock is set to wake it, where it has one.
    """

    name = "poweroff"
    summary = "power the machine off through logind (graceful if the kubelet holds its lock)"
    example = "{name: power-off, action: poweroff, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (SHUTDOWN_CANCELLED, MACHINE_OFF, BOOT_IDENTITY)  # a cancelled one leaves the machine on
    proof_facts = ("machine", "pid1-start", "boot-id", "inhibitors")
    facts = ("rtc", "shared-kernel", *KUBELET_REPORTING_FACTS)

    def uses_logind(self, params: Any) -> bool:
        return not params.force

    def prepare(self, target: Target, params: Any) -> UndoState:
        if target.power:
            require_power_control(target, "could not be powered on again after poweroff")
            return {"node": target.node, "force": params.force, "power": capture_power_state(target)}
        wake = _alarm(target, parse_duration(params.wake))
        return {"node": target.node, "force": params.force, "wake": wake, "reports": kubelet_reporting_facts(target)}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        alarm = HostCommand(("rtcwake", "-m", "no", "-s", str(memory["wake"]))) if "wake" in memory else None
        ahead = (alarm,) if alarm else disable_auto_restart(memory["power"])
        force = ("--force", "--force") if memory["force"] else ()
        return (*ahead, HostCommand(("systemctl", "poweroff", *force), ends_session=True))

    def undo(self, memory: UndoState) -> Undo:
        """The alarm is left alone: a machine on its way down needs it, and one that is up does not mind."""
        if "wake" in memory:
            return Undo((), kubelet_reporting_checks(memory["reports"]))
        return Undo(power_on_steps(memory["power"]), is_up_checks(memory["power"]))


def _alarm(target: Target, seconds: float) -> int:
    """Raises Unsupported where no alarm of a clock could wake the machine."""
    hint = "give its host a power control in the inventory"
    if not target.facts.get("rtc") or target.facts.get("shared-kernel") is not False:
        why = target.unknown.get("rtc", "it has no clock with an alarm of its own (fact rtc)")
        raise Unsupported(f"{target.node} could not be powered on again after poweroff: {why}", hint=hint)
    grace = target.require_fact("configz", "the alarm must be later than the shutdown").get("shutdownGracePeriod", "0s")
    if seconds < parse_duration(grace) + _ALARM_MARGIN_SECONDS:
        raise Unsupported(
            f"{target.node} may still be shutting down when its clock wakes it after {seconds:g}s "
            f"(shutdownGracePeriod is {grace})",
            hint=f"set wake to {parse_duration(grace) + _ALARM_MARGIN_SECONDS:g}s or more, or {hint}",
        )
    return round(seconds)


ACTION = Poweroff()
