"""Planned reboot through logind."""

from __future__ import annotations

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.evidence import REBOOTED
from chaos.faults.actions._machine import KUBELET_REPORTING_FACTS, RebootState, capture_reboot_state, restore_rebooted
from chaos.faults.actions._params import NoParams


class Reboot(Action[NoParams, RebootState]):
    """``systemctl reboot``: delay locks are honoured, and the machine boots without power control.

    A container is started again by its restart policy.
    """

    name = "reboot"
    summary = "reboot the machine through logind (graceful if the kubelet holds its lock)"
    example = "{name: reboot, action: reboot, target: victim}"
    params = NoParams
    state = RebootState
    undo_kind = UndoKind.SELF_RESTORING
    requires_logind = True
    may_disconnect = True
    takes_down = True
    proofs = (REBOOTED,)
    proof_facts = ("pid1-start", "boot-id", "inhibitor-locks", PseudoFact.MACHINE)
    facts = ("shared-kernel", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: NoParams) -> RebootState:  # noqa: ARG002 - no parameters
        return capture_reboot_state(target)

    def inject(self, state: RebootState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("systemctl", "reboot"), ends_session=True),)

    def undo(self, state: RebootState) -> Undo:
        return restore_rebooted(state)


ACTION = Reboot()
