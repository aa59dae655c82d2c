"""A restart of logind, with which holders of inhibitor locks may lose them."""

from __future__ import annotations

from functools import partial

from chaos.core.action import Action, Proof, Target, Undo, UndoKind
from chaos.core.command import Command
from chaos.faults.actions._bus import (
    FACTS,
    PROBES,
    BusState,
    capture_bus_state,
    process_replaced,
    restart,
    restore_inhibitor,
)
from chaos.faults.actions._params import NoParams
from chaos.faults.readings.logind import LOGIND


class LogindRestart(Action[NoParams, BusState]):
    """logind keeps locks across a restart; a shutdown that it was delaying is dropped."""

    name = "logind-restart"
    summary = "restart logind, and see who loses its lock on shutdown"
    example = "{name: restart, action: logind-restart, target: victim}"
    params = NoParams
    state = BusState
    no_windows_reason = "Windows has no logind"
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    requires_logind = True
    proofs = (Proof("another-process", partial(process_replaced, "logind")),)
    proof_facts = PROBES
    facts = FACTS

    def prepare(self, target: Target, params: NoParams) -> BusState:  # noqa: ARG002 - no parameters
        return capture_bus_state(target)

    def inject(self, state: BusState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (restart(LOGIND),)

    def undo(self, state: BusState) -> Undo:
        return restore_inhibitor(state)


ACTION = LogindRestart()
