"""Parts shared by actions that stop the kubelet's service: the failsafe task that starts it, and undo."""

from __future__ import annotations

from msgspec import Struct

from chaos.actions._service import ACTIVE
from chaos.model.action import FactCheck, FailsafeTimer, Target, Undo, UndoStep, failsafe_unit
from chaos.model.api_fact import PseudoFact
from chaos.model.command import HostCommand
from chaos.model.state_types import Tag, WindowsService
from chaos.model.windows import system_program

ALREADY_RUNNING, NOT_STARTED = 1056, 1062


class ServiceState(Struct, frozen=True):
    """The stopped service; ``seconds`` until the failsafe task starts it, ``tag`` for the task's name."""

    service: WindowsService
    tag: Tag
    seconds: float


def capture_kubelet_state(target: Target, why: str) -> ServiceState:
    """State of the kubelet's service. Raises Unsupported with ``why`` where the service is unknown."""
    return ServiceState(target.require_fact("kubelet-unit", why), target.tag, target.max_duration)


def stop_service(service: str) -> HostCommand:
    """``sc.exe stop``, which returns when the service has received it, not when it has stopped."""
    return HostCommand((system_program("sc"), "stop", service))


def start_service(service: str) -> HostCommand:
    """``sc.exe start``, also of a service that runs."""
    return HostCommand((system_program("sc"), "start", service), accept=(0, ALREADY_RUNNING))


def start_failsafe(state: ServiceState) -> FailsafeTimer:
    """The task that starts the service if nodefall does not."""
    return FailsafeTimer(failsafe_unit(state.tag), state.seconds, start_service(state.service).argv)


def restore_kubelet(state: ServiceState, disarm: str = "") -> Undo:
    """Start the kubelet; proven when its service runs and the node is Ready."""
    active = FactCheck("kubelet-state", ACTIVE)
    steps = (UndoStep(start_service(state.service), unless=active),)
    return Undo(steps, (active, FactCheck(PseudoFact.NODE_READY, True)), disarm=disarm)
