"""logind restarted: who held a lock on shutdown may have lost it."""

from __future__ import annotations

from functools import partial
from typing import Any

from chaos.actions._bus import FACTS, PROBES, capture_bus_state, process_replaced, restart, restore_inhibitor
from chaos.facts.bus_processes import LOGIND
from chaos.model.action import Action, Proof, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class LogindRestart(Action):
    """logind keeps locks over a restart; a shutdown that it was delaying is forgotten."""

    name = "logind-restart"
    summary = "restart logind, and see who loses its lock on shutdown"
    example = "{name: restart, action: logind-restart, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    requires_logind = True
    proofs = (Proof("another-process", partial(process_replaced, "logind")),)
    proof_facts = PROBES
    facts = FACTS

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        return capture_bus_state(target)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (restart(LOGIND),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_inhibitor(memory)


ACTION = LogindRestart()
