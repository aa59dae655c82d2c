"""Planned reboot through logind."""

from __future__ import annotations

from typing import Any

from chaos.actions._machine import (
    KUBELET_REPORTING_FACTS,
    POWER_ON,
    can_read_power_state,
    kubelet_reporting_checks,
    kubelet_reporting_facts,
)
from chaos.model.action import Action, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command, HostCommand
from chaos.model.evidence import BOOT_IDENTITY, POWER_LOST
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
    requires_logind = True
    may_disconnect = True
    takes_down = True
    proofs = (BOOT_IDENTITY, POWER_LOST)  # a container ends where a machine boots again
    proof_facts = ("pid1-start", "boot-id", "inhibitors", "machine")
    facts = KUBELET_REPORTING_FACTS

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        return {"node": target.node, "power": can_read_power_state(target), "reports": kubelet_reporting_facts(target)}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("systemctl", "reboot"), ends_session=True),)

    def undo(self, memory: UndoState) -> Undo:
        on = (POWER_ON,) if memory["power"] else ()
        return Undo(on, kubelet_reporting_checks(memory["reports"]))


ACTION = Reboot()
