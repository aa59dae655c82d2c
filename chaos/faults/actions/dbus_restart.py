"""A restart of D-Bus, with which holders of inhibitor locks may lose them."""

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


class DbusRestart(Action[NoParams, BusState]):
    """The kubelet reconnects every second and takes a new lock; signals sent meanwhile are lost (facts 1.1)."""

    name = "dbus-restart"
    summary = "restart D-Bus, and see who loses its lock on shutdown"
    example = "{name: restart, action: dbus-restart, target: victim}"
    params = NoParams
    state = BusState
    no_windows_reason = "Windows has no D-Bus"
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    requires_logind = True
    proofs = (Proof("another-process", partial(process_replaced, "bus")),)
    proof_facts = PROBES
    facts = FACTS

    def prepare(self, target: Target, params: NoParams) -> BusState:  # noqa: ARG002 - no parameters
        return capture_bus_state(target)

    def inject(self, state: BusState) -> tuple[Command, ...]:
        return (restart(state.bus_unit),)

    def undo(self, state: BusState) -> Undo:
        return restore_inhibitor(state)


ACTION = DbusRestart()
