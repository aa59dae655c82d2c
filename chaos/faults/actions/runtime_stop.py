"""The container runtime stopped by systemd: containers keep running, the kubelet cannot manage them."""

from __future__ import annotations

from chaos.core.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind, UndoStep, failsafe_unit
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command
from chaos.core.evidence import holds_until
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import ACTIVE, ServiceState, start_failsafe, systemctl


class RuntimeStop(Action[NoParams, ServiceState]):
    """Ready turns False 30 s later ("container runtime is down"); pods can neither start nor terminate."""

    name = "runtime-stop"
    summary = "stop the container runtime; containers keep running"
    example = "{name: stop, action: runtime-stop, target: victim}"
    params = NoParams
    state = ServiceState
    undo_kind = UndoKind.RESTORES
    stops_exec = True
    proofs = (holds_until("runtime-state", lambda v: v in ("inactive", "failed"), "systemd does not run the runtime"),)
    proof_facts = ("runtime-state",)
    facts = ("runtime-unit",)

    def prepare(self, target: Target, params: NoParams) -> ServiceState:  # noqa: ARG002 - no parameters
        unit = target.require_fact("runtime-unit", "the step stops the container runtime's unit")
        return ServiceState(unit, target.tag, target.max_duration)

    def inject(self, state: ServiceState) -> tuple[Command, ...]:
        return (systemctl("stop", state.unit),)

    def failsafe_timer(self, state: ServiceState) -> FailsafeTimer:
        return start_failsafe(state)

    def undo(self, state: ServiceState) -> Undo:
        active = FactCheck("runtime-state", ACTIVE)
        steps = (UndoStep(systemctl("start", state.unit), unless=active),)
        return Undo(steps, (active, FactCheck(PseudoFact.NODE_READY, True)), disarm=failsafe_unit(state.tag))


ACTION = RuntimeStop()
