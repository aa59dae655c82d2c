"""D-Bus restarted: who held a lock on shutdown may have lost it."""

from __future__ import annotations

from functools import partial
from typing import Any

from chaos.actions._bus import FACTS, PROBES, capture_bus_state, process_replaced, restart, restore_inhibitor
from chaos.model.action import Action, Proof, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class DbusRestart(Action):
    """The kubelet reconnects every second and takes a new lock; signals sent meanwhile are lost (facts 1.1)."""

    name = "dbus-restart"
    summary = "restart D-Bus, and see who loses its lock on shutdown"
    example = "{name: restart, action: dbus-restart, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    requires_logind = True
    proofs = (Proof("another-process", partial(process_replaced, "bus")),)
    proof_facts = PROBES
    facts = FACTS

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        return capture_bus_state(target)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (restart(memory["bus"]),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_inhibitor(memory)


ACTION = DbusRestart()
