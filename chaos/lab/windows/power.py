"""Shutdown of one Windows machine: the timer of InitiateShutdown, then the services, then power off or restart.

Graceful node shutdown on Windows: the kubelet's handler of the pre-shutdown notice. Facts 3.
Not cancellable: the notice comes when the countdown is over, and nothing takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chaos.lab.node.kubelet.node_shutdown import GracefulShutdown
from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.logind import Kind
from chaos.lab.rules.node import WindowsRules
from chaos.lab.sim import SimClock, Timer
from chaos.lab.spec import parse_duration
from chaos.lab.windows.disk import CONTROL, USER32, EventLog, WindowsRegistry
from chaos.lab.windows.services import Service, ServiceManager

IN_PROGRESS, NOT_IN_PROGRESS, ALREADY_SCHEDULED = 1115, 1116, 1190
_SESSIONS_END = 0.2  # invented: seconds between the end of the timer and the first notice to a service
LEGACY_REASON = "Legacy API shutdown|0x80070000"


class PowerError(Exception):
    """A request that Windows refuses, with its Win32 error code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"Win32 error {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """``seconds`` of the countdown; ``reason``: title and code, separated by a vertical bar."""

    kind: Kind
    seconds: float
    process: str = r"C:\Windows\system32\shutdown.exe"
    user: str = r"NT AUTHORITY\SYSTEM"
    reason: str = LEGACY_REASON
    comment: str = ""


class Power:
    """``stop_services`` stops the services and then calls its argument; ``complete`` cuts the power by kind."""

    def __init__(
        self,
        sim: SimClock,
        log: EventLog,
        stop_services: Callable[[Callable[[], None]], None],
        complete: Callable[[Kind], None],
        rules: WindowsRules,
    ) -> None:
        self._sim, self._log, self._rules = sim, log, rules
        self._stop_services, self._complete = stop_services, complete
        self.scheduled: ShutdownRequest | None = None
        self.is_in_progress = False
        self.on_countdown: Callable[[], None] = lambda: None
        self.on_late_abort: Callable[[], None] = lambda: None
        self._timer: Timer | None = None

    def request(self, request: ShutdownRequest) -> None:
        """Start a countdown, which may be 0 s. Raises PowerError."""
        if self.is_in_progress:
            raise PowerError(IN_PROGRESS)
        if self.scheduled is not None:
            raise PowerError(ALREADY_SCHEDULED)
        kind = "restart" if request.kind == "reboot" else "power off"
        self._log.log_shutdown_request(request.process, request.user, kind, request.reason, request.comment)
        self.scheduled = request
        self._timer = self._sim.after(request.seconds, self._begin)
        if request.seconds:
            self.on_countdown()
        else:
            self.is_in_progress = True

    def abort(self) -> None:
        """End the countdown. Raises PowerError: a shutdown whose countdown is over cannot be aborted."""
        if self.is_in_progress and self._rules.late_abort_accepted:
            return
        may_abort = not self.is_in_progress or self._rules.late_abort_effective
        if self.scheduled is None or not may_abort:  # invented: 1116 also once the services are being stopped
            raise PowerError(NOT_IN_PROGRESS)
        is_late = self.is_in_progress
        self.lose_power()
        self._log.write(USER32, 1075)
        if is_late:
            self.on_late_abort()

    def lose_power(self) -> None:
        """Drop the countdown or the shutdown in progress."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.scheduled = None
        self.is_in_progress = False

    def _begin(self) -> None:
        self.is_in_progress = True
        self._timer = self._sim.after(_SESSIONS_END, self._stop_services, self._stopped)

    def _stopped(self) -> None:
        if self.scheduled is not None and self.is_in_progress:
            self._log.log_stop()
            self._complete(self.scheduled.kind)


_RELOAD = (0.1, 0.3)  # invented: seconds from the start of the manager to the gauges
_MANAGER = "nodeshutdown_manager_windows"  # source file in log entries


def merge_order(existing: Sequence[str], service: str, dependencies: Sequence[str]) -> list[str]:
    """PreshutdownOrder with the service before the first of its dependencies; those not yet listed go to the end.

    Without dependencies the list stays as it is: the service is not in it.
    """
    if not dependencies:
        return list(existing)
    order = [name for name in existing if name.lower() != service.lower()]
    known = {name.lower() for name in order}
    order += [name for name in dependencies if name.lower() not in known]
    wanted = {name.lower() for name in dependencies}
    first = next(index for index, name in enumerate(order) if name.lower() in wanted)
    return [*order[:first], service, *order[first:]]


class WindowsShutdownManager(GracefulShutdown):
    """``service``: the service named kubelet, None if the kubelet runs under a service wrapper."""

    def __init__(
        self,
        process: Process,
        reporter: NodeStatusReporter,
        workers: PodWorkers,
        registry: WindowsRegistry,
        services: ServiceManager,
        service: Service | None,
    ) -> None:
        super().__init__(process, reporter, workers)
        self._registry, self._services, self._service = registry, services, service
        self._done: Callable[[], None] | None = None

    def start(self) -> None:
        """Merge PreshutdownOrder and raise the time-out of the service. Any failure leaves the manager off."""
        if not self._buckets or not self._rules.windows_graceful_node_shutdown:
            return
        windows = self._process.rules.windows
        if self._service is None:
            if windows.logs_missing_service:
                self._fail("kubelet is NOT running as a Windows service")
            return
        order = self._registry.strings(CONTROL, "PreshutdownOrder")
        if order is None:
            self._fail("The system cannot find the file specified.")
            return
        merged = merge_order(order, self._service.name, self._service.depends)
        self._registry.set(CONTROL, "PreshutdownOrder", "REG_MULTI_SZ", tuple(merged))
        total = sum(bucket.seconds for bucket in self._buckets)
        if windows.raises_preshutdown_timeout and total > self._services.preshutdown_timeout(self._service):
            self._services.set_preshutdown_timeout(self._service, total * 1000)
        if by_hand := self._process.machine.spec.preshutdown_timeout:
            self._services.set_preshutdown_timeout(self._service, int(parse_duration(by_hand) * 1000))
        self._service.on_preshutdown = self._on_preshutdown
        self._process.after_jitter(*_RELOAD, self._reload)

    def close(self) -> None:
        """End with the process: the service has no handler."""
        if self._service is not None:
            self._service.on_preshutdown = None

    def _fail(self, error: str) -> None:
        self._process.log("kubelet", "Failed to start node shutdown manager", err=error)

    def _on_preshutdown(self, done: Callable[[], None]) -> None:
        if not self._rules.heeds_preshutdown:
            done()
            return
        self._done = done
        self._emit_event("Shutdown manager detected preshutdown event")
        self._process.log(_MANAGER, "Shutdown manager detected new preshutdown event")
        self._process.log(_MANAGER, "Shutdown manager processing preshutdown event")
        self._end_pods()

    def _on_pods_ended(self) -> None:
        message = "Shutdown manager completed processing preshutdown event, node will shutdown shortly"
        self._process.log(_MANAGER, message)
        if self._done is not None:
            self._done()
