"""A reboot without a shutdown: no service is stopped, no lock is honoured, file systems are not unmounted."""

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
from chaos.model.errors import Unsupported
from chaos.model.evidence import BOOT_IDENTITY, POWER_LOST
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class HardReboot(Action):
    """``systemctl reboot --force --force``. One that is back within the grace period shows in no condition."""

    name = "hard-reboot"
    summary = "reboot the machine at once, without any shutdown"
    example = "{name: reboot, action: hard-reboot, target: victim}"
    params = Params
    undo_kind = UndoKind.SELF_RESTORING
    may_disconnect = True
    takes_down = True
    proofs = (BOOT_IDENTITY, POWER_LOST)  # a container ends where a machine boots again
    proof_facts = ("pid1-start", "boot-id", "inhibitors", "machine")
    facts = ("shared-kernel", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        if target.require_fact("shared-kernel", "a container ends where a machine reboots") and not target.power:
            why = f"{target.node} is a container, which may stay off"
            raise Unsupported(why, hint="give its host a power control in the inventory")
        return {"node": target.node, "power": can_read_power_state(target), "reports": kubelet_reporting_facts(target)}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("systemctl", "reboot", "--force", "--force"), ends_session=True),)

    def undo(self, memory: UndoState) -> Undo:
        return Undo((POWER_ON,) if memory["power"] else (), kubelet_reporting_checks(memory["reports"]))


ACTION = HardReboot()
