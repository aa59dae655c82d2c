"""The container runtime's service stopped, and the kubelet's first where it depends on the runtime."""

from __future__ import annotations

from chaos.core.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind, UndoStep, failsafe_unit
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command
from chaos.core.evidence import holds_until
from chaos.core.node_mark import WindowsService
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import ACTIVE
from chaos.faults.actions.windows._services import (
    ServiceState,
    start_failsafe,
    start_service,
    stop_service,
    stop_services_and_wait,
)


class RuntimeState(ServiceState, frozen=True):
    """``kubelet``: its service if it depends on the runtime, else ""; ``service`` is the runtime's."""

    kubelet: WindowsService | None = None


class RuntimeStop(Action[NoParams, RuntimeState]):
    """Windows stops no service that a running one depends on (1051): most platforms register the kubelet so.

    Then the kubelet stops with the runtime, and the node turns NotReady by its Lease; without the dependency by the
    kubelet's report, as on Linux.
    """

    name = "runtime-stop"
    summary = "stop the container runtime, and the kubelet first where it depends on it; containers keep running"
    example = "{name: stop, action: runtime-stop, target: victim}"
    params = NoParams
    state = RuntimeState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    proofs = (holds_until("runtime-state", lambda v: v == "inactive", "the runtime's service is stopped"),)
    proof_facts = ("runtime-state",)
    facts = ("runtime-unit", "kubelet-dependencies")

    def prepare(self, target: Target, params: NoParams) -> RuntimeState:  # noqa: ARG002 - no parameters
        service = target.require_fact("runtime-unit", "the step stops the container runtime's service")
        needed = target.require_fact("kubelet-dependencies", "a running kubelet may prevent the runtime's stop")
        kubelet = target.require_fact("kubelet-unit", "it depends on the runtime") if service in needed else None
        return RuntimeState(service, target.tag, target.max_duration, kubelet)

    def inject(self, state: RuntimeState) -> tuple[Command, ...]:
        kubelet = (stop_services_and_wait(state.kubelet),) if state.kubelet else ()
        return (*kubelet, stop_service(state.service))

    def failsafe_timer(self, state: RuntimeState) -> FailsafeTimer:
        return start_failsafe(state.tag, state.seconds, state.kubelet or state.service)

    def undo(self, state: RuntimeState) -> Undo:
        checks = {state.service: FactCheck("runtime-state", ACTIVE)}
        if state.kubelet:
            checks[state.kubelet] = FactCheck("kubelet-state", ACTIVE)
        steps = tuple(UndoStep(start_service(service), unless=check) for service, check in checks.items())
        return Undo(steps, (*checks.values(), FactCheck(PseudoFact.NODE_READY, True)), disarm=failsafe_unit(state.tag))


ACTION = RuntimeStop()
