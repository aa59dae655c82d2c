"""Power cut at once, without a notification to the machine."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from pydantic import Field

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand, PowerCapability, PowerCommand, PowerVerb
from chaos.core.errors import Unsupported
from chaos.core.evidence import BOOT_IDENTITY, MACHINE_OFF
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


class Params(Model):
    """How the power is cut."""

    how: Literal["power-control", "sysrq"] = Field(
        "power-control", description="off by the power control, or by the kernel itself (SysRq o)"
    )


class PowerCutState(Struct, frozen=True):
    """How the power is cut, and the machine before it."""

    method: Literal["power-control", "sysrq"]
    machine: MachineState


class PowerCut(Action[Params, PowerCutState]):
    """Off at once, as when the power cord is pulled; nothing more is written to disk.

    SysRq ``o`` is refused on a shared kernel. Either way the power control is needed to power the machine on again.
    """

    name = "power-cut"
    summary = "cut the power, without any shutdown"
    example = "{name: cut, action: power-cut, target: victim}"
    params = Params
    state = PowerCutState
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (MACHINE_OFF, BOOT_IDENTITY)
    proof_facts = (PseudoFact.MACHINE, "pid1-start", "boot-id")
    facts = ("shared-kernel", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: Params) -> PowerCutState:
        require_power_control(target, "has no power control to cut its power with, nor to come back by")
        if params.how == "power-control":
            require_power_control(target, "has no power control to cut its power with", needed=PowerCapability.OFF)
        elif target.require_fact("shared-kernel", "a shared kernel must not be powered off"):
            raise Unsupported(
                f"{target.node} is a container: it shares its machine's kernel", hint="use how: power-control"
            )
        return PowerCutState(params.how, capture_power_state(target))

    def inject(self, state: PowerCutState) -> tuple[Command, ...]:
        if state.method == "sysrq":
            off = ("sh", "-c", "echo o > /proc/sysrq-trigger")
            return (*disable_auto_restart(state.machine), HostCommand(off, ends_session=True, timeout=10.0))
        return (*disable_auto_restart(state.machine), PowerCommand(PowerVerb.OFF))

    def undo(self, state: PowerCutState) -> Undo:
        return Undo(power_on_steps(state.machine), is_up_checks(state.machine))


ACTION = PowerCut()
