"""D-Bus restarted: who held a lock on shutdown may have lost it."""

from __future__ import annotations

from functools import partial
from typing import Any

from chaos.actions._bus import FACTS, PROBES, another, bus_memory, locks_again, restart
from chaos.model.action import Action, Memory, Proof, Target, Undo, UndoKind
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
    gentle = True
    asks_logind = True
    proofs = (Proof("another-process", partial(another, "bus")),)
    probes = PROBES
    facts = FACTS

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        return bus_memory(target)

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (restart(memory["bus"]),)

    def undo(self, memory: Memory) -> Undo:
        return locks_again(memory)


ACTION = DbusRestart()
