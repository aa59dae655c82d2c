"""Services of kubelet and container runtime: stopped, started, restarted; and the failsafe task that starts one.

sc.exe returns when a service has received a control; the cmdlets of PowerShell wait until it has stopped or started.
"""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import (
    NODE_READY,
    FactCheck,
    FailsafeTimer,
    Needs,
    Program,
    Target,
    Undo,
    UndoStep,
    failsafe_unit,
)
from chaos.core.command import HostCommand
from chaos.core.evidence import fact_is, holds_until
from chaos.core.node_mark import Tag, WindowsService
from chaos.core.windows import powershell, system_program, windows_form
from chaos.faults.actions import units
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import ACTIVE
from chaos.faults.actions.units import PROCESS_REPLACED

_ALREADY_RUNNING, _NOT_STARTED = 1056, 1062
# Exit codes of sc.exe with which Windows refused the control.
_REFUSALS = (
    (1051, "running services depend on it"),
    (1052, "the service does not accept it"),
    (1058, "the service is disabled"),
    (1060, "there is no such service"),
    (1061, "the service is starting or stopping"),
)
_NO_ANSWER = " 1053:"  # in sc.exe's output: the service did not answer in 30 s, and may still do what it was sent
_WAIT = 100.0  # seconds for a service to stop and start


class ServiceState(Struct, frozen=True):
    """The service; ``seconds`` until the failsafe task starts it, ``tag`` for the task's name."""

    service: WindowsService
    tag: Tag
    seconds: float


def _capture_kubelet(target: Target, why: str) -> ServiceState:
    """State of the kubelet's service. Raises Unsupported with ``why`` where the service is unknown."""
    return ServiceState(target.require_fact("kubelet-unit", why), target.tag, target.max_duration)


def _stop_service(service: str) -> HostCommand:
    """``sc.exe stop``, which also accepts a stopped service."""
    argv = (system_program("sc"), "stop", service)
    return HostCommand(argv, accept=(0, _NOT_STARTED), undecided=(_NO_ANSWER,), refusals=_REFUSALS)


def _start_service(service: str) -> HostCommand:
    """``sc.exe start``, which starts dependencies first, and also accepts a running service."""
    argv = (system_program("sc"), "start", service)
    return HostCommand(argv, accept=(0, _ALREADY_RUNNING), undecided=(_NO_ANSWER,), refusals=_REFUSALS)


def stop_services_and_wait(*services: str) -> HostCommand:
    """Stop services one after the other, in this order; fails if other running services depend on one."""
    return HostCommand(powershell("stop-services", services=services), timeout=_WAIT)


def _start_failsafe(state: ServiceState, service: str) -> FailsafeTimer:
    """The task that starts the service if nodefall does not. It retries until the service runs."""
    argv = powershell("failsafe-start-service", service=service)
    return FailsafeTimer(failsafe_unit(state.tag), state.seconds, argv)


def _restore_kubelet(state: ServiceState) -> Undo:
    """Start the kubelet; proven when its service runs and the node is Ready."""
    active = FactCheck("kubelet-state", ACTIVE)
    return Undo((UndoStep(_start_service(state.service), unless=active),), (active, NODE_READY))


KUBELET_STOP = windows_form(
    units.KUBELET_STOP,
    summary="stop the kubelet's service; its containers keep running unreported",
    description="Runs ``sc.exe stop kubelet``. A stop is not a shutdown: the kubelet ends without touching its pods.",
    state=ServiceState,
    proofs=(holds_until("kubelet-state", lambda v: v == "inactive", "the kubelet's service is stopped"),),
    needs=Needs(proof_facts=("kubelet-state",)),
    prepare=lambda target, _: _capture_kubelet(target, "the step stops the kubelet's service"),
    program=lambda state: Program(
        (_stop_service(state.service),), _restore_kubelet(state), failsafe=_start_failsafe(state, state.service)
    ),
)
KUBELET_START = windows_form(
    units.KUBELET_START,
    description="Runs ``sc.exe start kubelet``, which also starts dependencies. A running kubelet is not affected.",
    state=ServiceState,
    proofs=(fact_is("kubelet-state", lambda v: v == ACTIVE, "the kubelet's service runs"),),
    needs=Needs(proof_facts=("kubelet-state", "kubelet-process")),
    prepare=lambda target, _: _capture_kubelet(target, "the step starts the kubelet's service"),
    program=lambda state: Program((_start_service(state.service),)),  # a running kubelet needs no undo
)


def _restart(state: ServiceState) -> Program:
    """Stop and start the service; ``sc.exe start`` would be refused (1056) while it stops."""
    restart = HostCommand(powershell("restart-service", service=state.service), timeout=_WAIT)
    return Program((restart,), _restore_kubelet(state))


KUBELET_RESTART = windows_form(
    units.KUBELET_RESTART,
    description="""
    Runs ``Restart-Service``, which waits for the stop. A kubelet that has begun a graceful shutdown refuses to stop.
    """,
    state=ServiceState,
    proofs=(PROCESS_REPLACED,),
    needs=Needs(proof_facts=("kubelet-state", "kubelet-process")),
    prepare=lambda target, _: _capture_kubelet(target, "the step restarts the kubelet's service"),
    program=_restart,
)


class RuntimeState(ServiceState, frozen=True):
    """``kubelet``: its service if it depends on the runtime, else ""; ``service`` is the runtime's."""

    kubelet: WindowsService | None = None


def _prepare_runtime(target: Target, _: NoParams) -> RuntimeState:
    service = target.require_fact("runtime-unit", "the step stops the container runtime's service")
    needed = target.require_fact("kubelet-dependencies", "a running kubelet may prevent the runtime's stop")
    kubelet = target.require_fact("kubelet-unit", "it depends on the runtime") if service in needed else None
    return RuntimeState(service, target.tag, target.max_duration, kubelet)


def _stop_runtime(state: RuntimeState) -> Program:
    kubelet = (stop_services_and_wait(state.kubelet),) if state.kubelet else ()
    checks = {state.service: FactCheck("runtime-state", ACTIVE)}
    if state.kubelet:
        checks[state.kubelet] = FactCheck("kubelet-state", ACTIVE)
    steps = tuple(UndoStep(_start_service(service), unless=check) for service, check in checks.items())
    return Program(
        (*kubelet, _stop_service(state.service)),
        Undo(steps, (*checks.values(), NODE_READY)),
        failsafe=_start_failsafe(state, state.kubelet or state.service),
    )


RUNTIME_STOP = windows_form(
    units.RUNTIME_STOP,
    summary="stop the container runtime, and the kubelet first where it depends on it; containers keep running",
    description="""
    Windows does not stop a service on which a running service depends (1051), and most platforms register the kubelet
    as such a service. Then the kubelet stops with the runtime, and the node becomes NotReady because of its Lease.
    Without the dependency, the kubelet reports NotReady, as on Linux.
    """,
    state=RuntimeState,
    proofs=(holds_until("runtime-state", lambda v: v == "inactive", "the runtime's service is stopped"),),
    needs=Needs(("runtime-unit", "kubelet-dependencies"), ("runtime-state",)),
    prepare=_prepare_runtime,
    program=_stop_runtime,
)
