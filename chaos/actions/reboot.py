"""Planned reboot through logind."""

from __future__ import annotations

from typing import Any

from chaos.actions._machine import POWER_ON, REPORTS, reports, runs_on, tells_state
from chaos.model.action import Action, Memory, Target, Undo, UndoKind
from chaos.model.command import Command, HostCommand
from chaos.model.evidence import BOOT_IDENTITY, WENT_OFF
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class Reboot(Action):
    """``systemctl reboot``: delay locks are honoured, and the machine comes back by itself."""

    name = "reboot"
    summary = "reboot the machine through logind (graceful if the kubelet holds its lock)"
    example = "{name: reboot, action: reboot, target: victim}"
    params = Params
    undo_kind = UndoKind.SELF_RESTORING
    asks_logind = True
    cuts_line = True
    takes_down = True
    proofs = (BOOT_IDENTITY, WENT_OFF)  # a container ends where a machine boots again
    probes = ("pid1-start", "boot-id", "inhibitors", "machine")
    facts = REPORTS

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        return {"node": target.node, "power": tells_state(target), "reports": reports(target)}

    def inject(self, memory: Memory) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("systemctl", "reboot"), ends_session=True),)

    def undo(self, memory: Memory) -> Undo:
        on = (POWER_ON,) if memory["power"] else ()
        return Undo(on, runs_on(memory["reports"]))


ACTION = Reboot()
