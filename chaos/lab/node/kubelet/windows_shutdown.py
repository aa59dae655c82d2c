"""Graceful node shutdown on Windows: the kubelet's handler of the pre-shutdown notice. Facts 3.

Not cancellable: the notice comes when the countdown is over, and nothing takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_shutdown import GracefulShutdown
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import Process
from chaos.lab.spec import parse_duration
from chaos.lab.windows.registry import CONTROL, WindowsRegistry
from chaos.lab.windows.services import Service, ServiceManager

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
        if not self._buckets or not self._spec.has_feature("windows-graceful-shutdown"):
            return
        if self._service is None:
            self._fail("kubelet is NOT running as a Windows service")
            return
        order = self._registry.strings(CONTROL, "PreshutdownOrder")
        if order is None:
            self._fail("The system cannot find the file specified.")
            return
        merged = merge_order(order, self._service.name, self._service.depends)
        self._registry.set(CONTROL, "PreshutdownOrder", "REG_MULTI_SZ", tuple(merged))
        total = sum(bucket.seconds for bucket in self._buckets)
        if total > self._services.preshutdown_timeout(self._service):
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
        if self._spec.has_breakage("preshutdown-ignored"):
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
