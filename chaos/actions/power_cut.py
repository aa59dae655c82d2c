"""Power taken away at once by the power control: nothing on the machine is told."""

from __future__ import annotations

from typing import Any

from chaos.actions._machine import POWER_ON, UP, need_power
from chaos.model.action import Action, Memory, Target, Undo, UndoKind
from chaos.model.command import Command, PowerCommand
from chaos.model.evidence import BOOT_IDENTITY, MACHINE_OFF
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class PowerCut(Action):
    """Off by the power control, as when a cable is pulled."""

    name = "power-cut"
    summary = "cut the power with the power control, without any shutdown"
    example = "{name: cut, action: power-cut, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    cuts_line = True
    proofs = (MACHINE_OFF, BOOT_IDENTITY)
    probes = ("machine", "pid1-start", "boot-id")

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        need_power(target, "has no power control to cut its power with")
        return {"node": target.node}

    def inject(self, memory: Memory) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (PowerCommand("off"),)

    def undo(self, memory: Memory) -> Undo:  # noqa: ARG002 - the same on every node
        return Undo((POWER_ON,), UP)


ACTION = PowerCut()
