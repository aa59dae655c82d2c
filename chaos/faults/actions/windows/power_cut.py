"""Power cut at once by the power control, without a notification to the machine."""

from __future__ import annotations

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, PowerCapability, PowerCommand, PowerVerb
from chaos.core.errors import Unsupported
from chaos.core.evidence import BOOT_IDENTITY, MACHINE_OFF
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    MachineState,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    power_on_steps,
    require_power_control,
)
from chaos.faults.actions.power_cut import Params


class PowerCut(Action[Params, MachineState]):
    """Off at once, as when the power cord is pulled; nothing more is written to disk. Windows has no SysRq."""

    name = "power-cut"
    summary = "cut the power, without any shutdown"
    example = "{name: cut, action: power-cut, target: victim}"
    params = Params
    state = MachineState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (MACHINE_OFF, BOOT_IDENTITY)
    proof_facts = (PseudoFact.MACHINE, "boot-id", "last-stop")
    facts = KUBELET_REPORTING_FACTS

    def prepare(self, target: Target, params: Params) -> MachineState:
        if params.how != "power-control":
            raise Unsupported(
                f"{target.node} runs Windows, which has no SysRq: nothing on the machine cuts its power",
                hint="use how: power-control",
            )
        require_power_control(target, "has no power control to cut its power with, nor to come back by")
        require_power_control(target, "has no power control to cut its power with", needed=PowerCapability.OFF)
        return capture_power_state(target)

    def inject(self, state: MachineState) -> tuple[Command, ...]:
        return (*disable_auto_restart(state), PowerCommand(PowerVerb.OFF))

    def undo(self, state: MachineState) -> Undo:
        return Undo(power_on_steps(state), is_up_checks(state))


ACTION = PowerCut()
