"""Parts shared by actions on services: control codes, the failsafe task that starts the service, and undo.

sc.exe returns when a service has received a control; the cmdlets of PowerShell wait until it has stopped or started.
"""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import FactCheck, FailsafeTimer, Target, Undo, UndoStep, failsafe_unit
from chaos.core.api_fact import PseudoFact
from chaos.core.command import HostCommand
from chaos.core.node_mark import Tag, WindowsService
from chaos.core.windows import powershell, system_program
from chaos.faults.actions._service import ACTIVE

ALREADY_RUNNING, NOT_STARTED = 1056, 1062
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


def capture_kubelet_state(target: Target, why: str) -> ServiceState:
    """State of the kubelet's service. Raises Unsupported with ``why`` where the service is unknown."""
    return ServiceState(target.require_fact("kubelet-unit", why), target.tag, target.max_duration)


def stop_service(service: str) -> HostCommand:
    """``sc.exe stop``, also of a service that is stopped."""
    argv = (system_program("sc"), "stop", service)
    return HostCommand(argv, accept=(0, NOT_STARTED), undecided=(_NO_ANSWER,), refusals=_REFUSALS)


def start_service(service: str) -> HostCommand:
    """``sc.exe start``, which starts what the service depends on first; also of a service that runs."""
    argv = (system_program("sc"), "start", service)
    return HostCommand(argv, accept=(0, ALREADY_RUNNING), undecided=(_NO_ANSWER,), refusals=_REFUSALS)


def stop_services_and_wait(*services: str) -> HostCommand:
    """Stop services in this order, each once the one before it has stopped; fails if others that run depend on one."""
    return HostCommand(powershell("stop-services", services=services), timeout=_WAIT)


def restart_service(service: str) -> HostCommand:
    """Stop and start a service; ``sc.exe start`` would be refused (1056) while it stops."""
    return HostCommand(powershell("restart-service", service=service), timeout=_WAIT)


def start_failsafe(tag: str, seconds: float, service: str) -> FailsafeTimer:
    """The task that starts the service if nodefall does not: again while Windows refuses that, or it does not run."""
    return FailsafeTimer(failsafe_unit(tag), seconds, powershell("failsafe-start-service", service=service))


def restore_kubelet(state: ServiceState, disarm: str = "") -> Undo:
    """Start the kubelet; proven when its service runs and the node is Ready."""
    active = FactCheck("kubelet-state", ACTIVE)
    steps = (UndoStep(start_service(state.service), unless=active),)
    return Undo(steps, (active, FactCheck(PseudoFact.NODE_READY, True)), disarm=disarm)
