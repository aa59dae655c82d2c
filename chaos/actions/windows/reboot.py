"""Planned reboot: Windows notifies its services first, the kubelet in its pre-shutdown phase."""

from __future__ import annotations

from chaos.actions._machine import KUBELET_REPORTING_FACTS, restore_rebooted
from chaos.actions._params import NoParams
from chaos.actions.windows._shutdown import NO_SHUTDOWN_PENDING, ShutdownState, capture_shutdown, shut_down
from chaos.model.action import Action, FactCheck, Target, Undo, UndoKind
from chaos.model.api_fact import PseudoFact
from chaos.model.command import Command
from chaos.model.evidence import REBOOTED


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
