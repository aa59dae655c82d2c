"""One kubelet process: the state that its parts share, and timers that end with the process.

A stopped process (SIGSTOP) defers its due timers until SIGCONT.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.registry import Registry
from chaos.lab.node.kubelet.apiserver_link import ApiServerLink
from chaos.lab.node.kubelet.cpu import KubeletCpu
from chaos.lab.node.kubelet.machine_view import MachineView
from chaos.lab.node.kubelet.metrics import Metrics
from chaos.lab.objects.accessors import Object
from chaos.lab.sim.clock import SimClock, Timer
from chaos.lab.spec import LabSpec

_EVENT_RETRY_TIMEOUT = 120.0  # client-go: 12 attempts, 10 s apart


@dataclass(slots=True, eq=False)
class Process:
    """``is_shutting_down`` is lost when the process ends (facts 1.4, 1.7).

    ``rejections_left``: number of pods that it still rejects for a shutdown before it is stopped, in a replay.
    ``has_pod_changes``: since the last sync of all pods, one of the node's pods has changed, or a worker runs again.
    """

    sim: SimClock
    registry: Registry
    spec: LabSpec
    machine: MachineView
    recorder: Recorder
    pid: int
    metrics: Metrics
    cpu: KubeletCpu
    is_alive: bool = True
    is_shutting_down: bool = False
    is_frozen: bool = False
    rejections_left: float = math.inf
    has_pod_changes: bool = True
    start_time: float = field(default=0.0)
    link: ApiServerLink = field(init=False)
    on_freeze: Callable[[], object] = field(default=lambda: None)
    _deferred_timers: list[Timer] = field(default_factory=list)
    _event_count: int = 0

    def __post_init__(self) -> None:
        self.link = ApiServerLink(self.sim, self, self.machine.network)

    @property
    def node(self) -> str:
        return self.machine.name

    def at(self, due: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call at ``due``, as :meth:`after`."""
        timer = self.sim.at(due, call, *args)
        timer.guard = self._may_run
        return timer

    def after(self, delay: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call ``delay`` seconds from now if the process is still alive; deferred while it is stopped."""
        timer = self.sim.at(self.sim.now + delay, call, *args)
        timer.guard = self._may_run
        return timer

    def after_jitter(self, low: float, high: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call after a random delay between ``low`` and ``high`` seconds, as :meth:`after`."""
        sim = self.sim
        timer = sim.at(sim.now + (low + (high - low) * sim.rng.random()), call, *args)
        timer.guard = self._may_run
        return timer

    def may_reject(self, reason: str) -> bool:
        """Whether the process lives long enough to reject another pod for this reason."""
        if reason == "NodeShutdown":
            self.rejections_left -= 1
        return self.rejections_left >= 0

    def freeze(self) -> None:
        """Handle SIGSTOP."""
        self.on_freeze()
        self.is_frozen = True

    def thaw(self) -> None:
        """Handle SIGCONT: run the deferred timers."""
        self.is_frozen = False
        due, self._deferred_timers = self._deferred_timers, []
        for timer in due:
            if not timer.cancelled:
                timer.run()

    def log(self, source: str, message: str, **values: object) -> None:
        """Write a klog line of level 1 to the journal if the kubelet runs with ``--v=1`` or more."""
        if self.machine.spec.kubelet_verbosity:
            self.machine.journal.write(self.pid, source, message, **values)

    def emit(self, kind: str, obj: Object, reason: str, message: str, *, type_: str = "Normal") -> None:
        """Send an event once the API server can be reached; drop the event after 120 s."""
        self._event_count += 1
        self.link.send(("event", self._event_count), self._emit, self.sim.now, kind, obj, reason, message, type_)

    def emit_node(self, reason: str, message: str, *, type_: str = "Normal") -> None:
        """Send an event about the kubelet's Node."""
        self.emit("Node", {"metadata": {"name": self.node}}, reason, message, type_=type_)

    def _emit(self, since: float, kind: str, obj: Object, reason: str, message: str, type_: str) -> None:
        if self.sim.now - since <= _EVENT_RETRY_TIMEOUT:
            self.recorder.emit(kind, obj, reason, message, type_=type_)

    def _may_run(self, timer: Timer) -> bool:
        if self.is_frozen:
            self._deferred_timers.append(timer)
            return False
        return self.is_alive and not self.cpu.defer(self._run_late, timer)

    def _run_late(self, timer: Timer) -> None:
        """Run a timer whose work has waited for the CPU quota."""
        if timer.cancelled or not self.is_alive:
            return
        if self.is_frozen:
            self._deferred_timers.append(timer)
            return
        timer.call(*timer.args)
