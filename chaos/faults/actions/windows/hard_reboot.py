"""A reboot without a shutdown: the power control cuts the power, and gives it back."""

from __future__ import annotations

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, PowerCapability, PowerCommand, PowerVerb
from chaos.core.evidence import REBOOTED
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    MachineState,
    RebootState,
    can_read_power_state,
    kubelet_reporting_checks,
    kubelet_reporting_facts,
    power_on_steps,
    require_power_control,
)
from chaos.faults.actions._params import NoParams


class HardReboot(Action[NoParams, RebootState]):
    """Power off, then on: Windows itself reboots only by a shutdown. The step begins when the power comes back."""

    name = "hard-reboot"
    summary = "reboot the machine at once, without any shutdown"
    example = "{name: reboot, action: hard-reboot, target: victim}"
    params = NoParams
    state = RebootState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.SELF_RESTORING
    may_disconnect = True
    takes_down = True
    proofs = (REBOOTED,)
    proof_facts = ("boot-id", "last-stop", PseudoFact.MACHINE)
    facts = KUBELET_REPORTING_FACTS

    def prepare(self, target: Target, params: NoParams) -> RebootState:  # noqa: ARG002 - no parameters
        why = "runs Windows, which reboots without a shutdown only by a power control"
        require_power_control(target, why)
        require_power_control(target, why, needed=PowerCapability.OFF)
        return RebootState(can_read_power_state(target), kubelet_reporting_facts(target))

    def inject(self, state: RebootState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (PowerCommand(PowerVerb.OFF), PowerCommand(PowerVerb.ON))

    def undo(self, state: RebootState) -> Undo:
        """Power on by any power control: the run may end between off and on, and nothing else wakes the machine."""
        machine = MachineState(state.can_read_power, "", state.reporting_facts)
        return Undo(power_on_steps(machine), kubelet_reporting_checks(state.reporting_facts))


ACTION = HardReboot()
