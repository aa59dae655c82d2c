"""Planned power-off: Windows notifies its services first, the kubelet in its pre-shutdown phase."""

from __future__ import annotations

from chaos.core.action import Action, FactCheck, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command
from chaos.core.errors import Unsupported
from chaos.core.evidence import BOOT_IDENTITY, MACHINE_OFF
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    disable_auto_restart,
    is_up_checks,
    power_on_steps,
    require_power_control,
)
from chaos.faults.actions.poweroff import Params
from chaos.faults.actions.windows._shutdown import NO_SHUTDOWN_PENDING, ShutdownState, capture_shutdown, shut_down


class Poweroff(Action[Params, ShutdownState]):
    """``shutdown.exe /s /f /t 0``. A power control must power the machine on again: nothing else wakes it."""

    name = "poweroff"
    summary = "power the machine off by a shutdown (graceful if the kubelet takes part in it)"
    example = "{name: power-off, action: poweroff, target: victim}"
    params = Params
    state = ShutdownState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (MACHINE_OFF, BOOT_IDENTITY)
    proof_facts = (PseudoFact.MACHINE, "boot-id", "last-stop", "scheduled-shutdown")
    facts = ("scheduled-shutdown", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: Params) -> ShutdownState:
        if params.force:
            raise Unsupported(
                f"{target.node} runs Windows, which powers off only after it has notified its services (force)",
                hint="leave force out, or use power-cut",
            )
        if params.wake != Params.model_fields["wake"].default:
            raise Unsupported(
                f"{target.node} runs Windows: no alarm of its clock is set to wake it (wake)",
                hint="leave wake out, and give its host a power control in the inventory",
            )
        require_power_control(target, "could not be powered on again after poweroff")
        return capture_shutdown(target)

    def inject(self, state: ShutdownState) -> tuple[Command, ...]:
        return (*disable_auto_restart(state.machine), shut_down("/s", 0, state.tag))

    def preconditions(self, state: ShutdownState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (NO_SHUTDOWN_PENDING,)

    def undo(self, state: ShutdownState) -> Undo:
        return Undo(power_on_steps(state.machine), is_up_checks(state.machine))


ACTION = Poweroff()
