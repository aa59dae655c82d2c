"""Planned power-off through logind, so that delay locks, the kubelet's among them, are honoured."""

from __future__ import annotations

from typing import Any

from chaos.actions._machine import POWER_ON, UP, need_power
from chaos.model.action import Action, Memory, Target, Undo, UndoKind
from chaos.model.command import Command, HostCommand
from chaos.model.evidence import BOOT_IDENTITY, CANCELLED, MACHINE_OFF
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class Poweroff(Action):
    """``systemctl poweroff``; never ``poweroff`` itself, which bypassed logind before systemd 251."""

    name = "poweroff"
    summary = "power the machine off through logind (graceful if the kubelet holds its lock)"
    example = "{name: power-off, action: poweroff, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    cuts_line = True
    proofs = (MACHINE_OFF, BOOT_IDENTITY, CANCELLED)
    probes = ("machine", "pid1-start", "boot-id", "inhibitors")

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        need_power(target, "could not be powered on again after poweroff")
        return {"node": target.node}

    def inject(self, memory: Memory) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("systemctl", "poweroff"), ends_session=True),)

    def undo(self, memory: Memory) -> Undo:  # noqa: ARG002 - the same on every node
        return Undo((POWER_ON,), UP)


ACTION = Poweroff()
