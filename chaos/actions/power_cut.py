"""Power taken away at once by the power control: nothing on the machine is told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chaos.actions._machine import (
    KUBELET_REPORTING_FACTS,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    power_on_steps,
    require_power_control,
)
from chaos.model.action import Action, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command, HostCommand, PowerCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import BOOT_IDENTITY, MACHINE_OFF
from chaos.model.experiment import Model


class Params(Model):
    """By what."""

    how: Literal["power-control", "sysrq"] = Field(
        "power-control", description="off by the power control, or by the kernel itself (SysRq o)"
    )


class PowerCut(Action):
    """Off at once, as when a cable is pulled; nothing is written to disk any more.

    SysRq ``o`` is refused where the kernel is others' too; the power control is needed either way, to come back.
    """

    name = "power-cut"
    summary = "cut the power, without any shutdown"
    example = "{name: cut, action: power-cut, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (MACHINE_OFF, BOOT_IDENTITY)
    proof_facts = ("machine", "pid1-start", "boot-id")
    facts = ("shared-kernel", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: Params) -> UndoState:
        require_power_control(target, "has no power control to cut its power with, nor to come back by")
        if params.how == "power-control":
            require_power_control(target, "has no power control to cut its power with", verb="off")
        elif target.require_fact("shared-kernel", "only a kernel of its own may be told to go off"):
            raise Unsupported(f"{target.node} is a container: its kernel is others' too", hint="use how: power-control")
        return {"how": params.how, "power": capture_power_state(target)}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        if memory["how"] == "sysrq":
            off = ("sh", "-c", "echo o > /proc/sysrq-trigger")
            return (*disable_auto_restart(memory["power"]), HostCommand(off, ends_session=True, timeout=10.0))
        return (*disable_auto_restart(memory["power"]), PowerCommand("off"))

    def undo(self, memory: UndoState) -> Undo:
        return Undo(power_on_steps(memory["power"]), is_up_checks(memory["power"]))


ACTION = PowerCut()
