"""Soft off through the power control: what the power button of a machine asks its operating system for."""

from __future__ import annotations

from chaos.core.action import Action, FactCheck, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, PowerCapability, PowerCommand, PowerVerb
from chaos.core.errors import Unsupported
from chaos.core.evidence import BOOT_IDENTITY, MACHINE_OFF, SHUTDOWN_CANCELLED
from chaos.core.field_types import Model
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    MachineState,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    power_on_steps,
    require_power_control,
)
from chaos.faults.readings.logind import POWERS_OFF

_POWER_KEY = "power-key"
# For a stop that was accepted to reach the guest, or the status of its power control, whichever comes first.
_SETTLE_SECONDS = 60.0
_NOT_STOPPING = FactCheck(PseudoFact.STOPPING, False)


class Params(Model):
    """There are no parameters."""


class PowerButton(Action[Params, MachineState]):
    """A press of the power button, which logind answers with a shutdown that honours delay locks such as the kubelet's.

    Refused where logind does something else (logind.conf, HandlePowerKey). Some power controls ask an agent of the
    guest instead, and some cut the power when the guest takes too long: see docs/power.md.
    """

    name = "power-button"
    summary = "press the power button: a shutdown that the power control asks for (ACPI soft off)"
    example = "{name: press, action: power-button, target: victim}"
    params = Params
    state = MachineState
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    requires_logind = True
    proofs = (SHUTDOWN_CANCELLED, MACHINE_OFF, BOOT_IDENTITY)  # a cancelled one leaves the machine on
    proof_facts = (PseudoFact.MACHINE, "pid1-start", "boot-id", "inhibitor-locks")
    facts = (_POWER_KEY, *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: Params) -> MachineState:  # noqa: ARG002 - there are none
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

    def preconditions(self, state: MachineState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same for all
        return (FactCheck(_POWER_KEY, POWERS_OFF),)

    def inject(self, state: MachineState) -> tuple[Command, ...]:
        return (*disable_auto_restart(state), PowerCommand(PowerVerb.SOFT_OFF))

    def undo(self, state: MachineState) -> Undo:
        """Proven when no stop is under way any more: a machine that has not begun to shut down still looks up."""
        return Undo(power_on_steps(state), (_NOT_STOPPING, *is_up_checks(state)), settle_seconds=_SETTLE_SECONDS)


ACTION = PowerButton()
