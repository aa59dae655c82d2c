"""Planned reboot: Windows notifies its services first, the kubelet in its pre-shutdown phase."""

from __future__ import annotations

from chaos.core.action import Action, FactCheck, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command
from chaos.core.evidence import REBOOTED
from chaos.faults.actions._machine import KUBELET_REPORTING_FACTS, restore_rebooted
from chaos.faults.actions._params import NoParams
from chaos.faults.actions.windows._shutdown import NO_SHUTDOWN_PENDING, ShutdownState, capture_shutdown, shut_down


class Reboot(Action[NoParams, ShutdownState]):
    """``shutdown.exe /r /f /t 0``: the machine boots without a power control, unless an update holds it up."""

    name = "reboot"
    summary = "reboot the machine by a shutdown (graceful if the kubelet takes part in it)"
    example = "{name: reboot, action: reboot, target: victim}"
    params = NoParams
    state = ShutdownState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.SELF_RESTORING
    may_disconnect = True
    takes_down = True
    proofs = (REBOOTED,)
    proof_facts = ("boot-id", "last-stop", "scheduled-shutdown", PseudoFact.MACHINE)
    facts = ("scheduled-shutdown", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: NoParams) -> ShutdownState:  # noqa: ARG002 - no parameters
        return capture_shutdown(target)

    def inject(self, state: ShutdownState) -> tuple[Command, ...]:
        return (shut_down("/r", 0, state.tag),)

    def preconditions(self, state: ShutdownState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (NO_SHUTDOWN_PENDING,)

    def undo(self, state: ShutdownState) -> Undo:
        return restore_rebooted(state.machine)


ACTION = Reboot()
