"""A machine powered off: by a shutdown through logind, by its power button, or immediately."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from pydantic import Field

from chaos.core.action import Action, FactCheck, Needs, Program, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import HostCommand, PowerCapability, PowerCommand, PowerVerb
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import BOOT_IDENTITY, SHUTDOWN_CANCELLED
from chaos.core.field_types import DurationText, Flag, Model
from chaos.core.machine_evidence import MACHINE_OFF
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    MachineState,
    capture_power_state,
    disable_auto_restart,
    kubelet_reporting_checks,
    power_on_again,
    refuse_unusable_power_control,
    require_power_control,
)
from chaos.faults.actions._params import NoParams
from chaos.faults.readings.logind import POWERS_OFF

_ALARM_MARGIN_SECONDS = 60.0  # an alarm that fires before the machine is off wakes nothing
_POWER_KEY = "power-key"
# For a stop that was accepted to reach the guest, or the status of its power control, whichever comes first.
_SETTLE_SECONDS = 60.0
_GOES_DOWN = (PseudoFact.MACHINE, "pid1-start", "boot-id", "inhibitor-locks")


class PoweroffParams(Model):
    """How the machine goes down, and how it starts again without a power control."""

    force: Flag = Field(
        False, description="Bypass logind (--force twice). Locks are ignored and services are not stopped."
    )
    wake: DurationText = Field(
        "4m", description="When the hardware clock (RTC) wakes a machine that has no power control."
    )


class PoweroffState(Struct, frozen=True):
    """The machine before the power-off; ``alarm`` in seconds, None with a power control."""

    force: bool
    machine: MachineState
    alarm: int | None = None


def _prepare_poweroff(target: Target, params: PoweroffParams) -> PoweroffState:
    if target.power:
        require_power_control(target, "could not be powered on again after poweroff")
        return PoweroffState(params.force, capture_power_state(target))
    alarm = _alarm(target, parse_duration(params.wake))
    return PoweroffState(params.force, capture_power_state(target), alarm)


def _alarm(target: Target, seconds: float) -> int:
    """Whole seconds until the alarm. Raises Unsupported if no clock alarm can wake the machine."""
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


def _poweroff(state: PoweroffState) -> Program:
    """Power off. The alarm stays set: a machine that goes down needs it, and it has no effect on a running machine."""
    force = ("--force", "--force") if state.force else ()
    off = HostCommand(("systemctl", "poweroff", *force), ends_session=True)
    if state.alarm is None:
        return Program((*disable_auto_restart(state.machine), off), power_on_again(state.machine))
    set_alarm = HostCommand(("rtcwake", "-m", "no", "-s", str(state.alarm)))
    return Program((set_alarm, off), Undo((), kubelet_reporting_checks(state.machine.reporting_facts)))


POWEROFF = Action(
    name="poweroff",
    summary="power the machine off through logind (graceful if the kubelet holds its lock)",
    description="""
    Runs ``systemctl poweroff``, and never ``poweroff``, which bypassed logind before systemd 251.

    Without a power control, the alarm of the host's real-time clock wakes the machine.
    """,
    example="{name: power-off, action: poweroff, target: victim}",
    params=PoweroffParams,
    state=PoweroffState,
    undo_kind=UndoKind.RESTORES,
    may_disconnect=True,
    takes_down=True,
    proofs=(SHUTDOWN_CANCELLED, MACHINE_OFF, BOOT_IDENTITY),  # a cancelled one leaves the machine on
    needs=lambda params: Needs(("rtc", "shared-kernel", *KUBELET_REPORTING_FACTS), _GOES_DOWN, logind=not params.force),
    prepare=_prepare_poweroff,
    program=_poweroff,
)


def _prepare_button(target: Target, _: NoParams) -> MachineState:
    why = "has no power control that asks it to shut down"
    require_power_control(target, why, needed=PowerCapability.SOFT_OFF)
    require_power_control(target, "could not be powered on again after power-button")
    key = target.require_fact(_POWER_KEY, "it decides what a press of the power button does")
    if key != POWERS_OFF:
        raise Unsupported(
            f"{target.node} does not power off when its power button is pressed: HandlePowerKey is {key}",
            hint="use poweroff, or set HandlePowerKey=poweroff in logind.conf",
        )
    return capture_power_state(target)


def _press_button(state: MachineState) -> Program:
    """Press the button. The undo waits until no stop is in progress: before its shutdown, a machine still looks up."""
    on = power_on_again(state)
    not_stopping = FactCheck(PseudoFact.STOPPING, False)
    return Program(
        (*disable_auto_restart(state), PowerCommand(PowerVerb.SOFT_OFF)),
        Undo(on.steps, (not_stopping, *on.proof), settle_seconds=_SETTLE_SECONDS),
        preconditions=(FactCheck(_POWER_KEY, POWERS_OFF),),
    )


POWER_BUTTON = Action(
    name="power-button",
    summary="press the power button: a shutdown that the power control asks for (ACPI soft off)",
    description="""
    Presses the power button. logind answers with a shutdown that honors delay locks such as the kubelet's. The action
    is refused if logind is configured to do something else (logind.conf, HandlePowerKey). Some power controls ask an
    agent in the guest instead, and some cut the power if the guest takes too long: see docs/power.md.
    """,
    example="{name: press, action: power-button, target: victim}",
    params=NoParams,
    state=MachineState,
    undo_kind=UndoKind.RESTORES,
    may_disconnect=True,
    takes_down=True,
    proofs=(SHUTDOWN_CANCELLED, MACHINE_OFF, BOOT_IDENTITY),  # a cancelled one leaves the machine on
    needs=Needs((_POWER_KEY, *KUBELET_REPORTING_FACTS), _GOES_DOWN, logind=True),
    prepare=_prepare_button,
    program=_press_button,
)


class PowerCutParams(Model):
    """How the power is cut."""

    how: Literal["power-control", "sysrq"] = Field(
        "power-control", description="Whether the power control or the kernel (SysRq o) cuts the power."
    )


class PowerCutState(Struct, frozen=True):
    """How the power is cut, and the machine before it."""

    method: Literal["power-control", "sysrq"]
    machine: MachineState


def _prepare_cut(target: Target, params: PowerCutParams) -> PowerCutState:
    require_power_control(target, "has no power control to cut its power with, nor to come back by")
    if params.how == "power-control":
        require_power_control(target, "has no power control to cut its power with", needed=PowerCapability.OFF)
    elif target.require_fact("shared-kernel", "a shared kernel must not be powered off"):
        raise Unsupported(
            f"{target.node} is a container: it shares its machine's kernel", hint="use how: power-control"
        )
    return PowerCutState(params.how, capture_power_state(target))


def _cut_power(state: PowerCutState) -> Program:
    sysrq = HostCommand(("sh", "-c", "echo o > /proc/sysrq-trigger"), ends_session=True, timeout=10.0)
    off = sysrq if state.method == "sysrq" else PowerCommand(PowerVerb.OFF)
    return Program((*disable_auto_restart(state.machine), off), power_on_again(state.machine))


POWER_CUT = Action(
    name="power-cut",
    summary="cut the power, without any shutdown",
    description="""
    The machine is off at once, as if the power cord were pulled, and writes nothing more to its disk. The method
    ``sysrq`` (SysRq ``o``) is refused on a shared kernel. With either method, the power control must be able to power
    the machine on again.
    """,
    example="{name: cut, action: power-cut, target: victim}",
    params=PowerCutParams,
    state=PowerCutState,
    undo_kind=UndoKind.RESTORES,
    may_disconnect=True,
    takes_down=True,
    proofs=(MACHINE_OFF, BOOT_IDENTITY),
    needs=Needs(("shared-kernel", *KUBELET_REPORTING_FACTS), (PseudoFact.MACHINE, "pid1-start", "boot-id")),
    prepare=_prepare_cut,
    program=_cut_power,
)
