"""Planned power-off through logind, so that delay locks, the kubelet's among them, are honoured."""

from __future__ import annotations

from typing import Any

from chaos.facts.login1 import NOT_PREPARING
from chaos.model.action import Check, Memory, Target, Undo, UndoKind, UndoStep
from chaos.model.command import Command, HostCommand, PowerCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import BOOT_IDENTITY, CANCELLED, MACHINE_OFF
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class Poweroff:
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
        if not target.power:
            raise Unsupported(
                f"{target.node} could not be powered on again after poweroff",
                hint="give its host a power control in the inventory",
            )
        return {"node": target.node}

    def inject(self, memory: Memory) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("systemctl", "poweroff"), ends_session=True),)

    def undo(self, memory: Memory) -> Undo:  # noqa: ARG002 - the same on every node
        """Up is a machine whose logind answers that it is not going down: on and Ready it may also be on its way."""
        return Undo(
            (UndoStep(PowerCommand("on"), unless=Check("machine", "on")),),
            (Check("machine", "on"), Check("preparing-for-shutdown", NOT_PREPARING), Check("node-ready", True)),
        )


ACTION = Poweroff()
