"""One kubelet process: the state and the timers of its parts, its CPU time, and the machine as it sees it.

A stopped process (SIGSTOP) defers its due timers until SIGCONT. With a CPU quota its work waits in a queue, and is done
at the quota's rate. The costs are assumptions of the order of a small node; what follows from them is only that work is
late, and that a loop begins again when its work is done, so that the queue is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, Protocol

from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.registry import Registry
from chaos.lab.node.kubelet.apiserver_link import ApiServerLink
from chaos.lab.node.kubelet.metrics import Metrics
from chaos.lab.node.kubelet.runtime import Runtime
from chaos.lab.node.logind import Journal, Logind
from chaos.lab.node.network import Network
from chaos.lab.objects import Object
from chaos.lab.rules import Rules
from chaos.lab.sim import SimClock, Timer
from chaos.lab.spec import LabSpec, NodeSpec, OperatingSystem

_EVENT_RETRY_TIMEOUT = 120.0  # client-go: 12 attempts, 10 s apart


class Descriptors:
    """File descriptors of a process: an open file gets the lowest free number (open(2)).

    Those with low numbers that a kubelet never closes are left out: only which numbers are free again matters.
    """

    def __init__(self) -> None:
        self._closes: dict[int, Callable[[], None]] = {}

    def open(self, on_close: Callable[[], None] = lambda: None) -> int:
        """Return the number of a file that has just been opened. ``on_close`` is called when it is closed."""
        number = next(number for number in count(1) if number not in self._closes)
        self._closes[number] = on_close
        return number

    def is_open(self, number: int) -> bool:
        return number in self._closes

    def close(self, number: int) -> None:
        """Close whichever file has the number; the kubelet ignores EBADF."""
        if on_close := self._closes.pop(number, None):
            on_close()

    def close_all(self) -> None:
        """Close all files, as at the end of the process."""
        for number in list(self._closes):
            self.close(number)


@dataclass(slots=True, eq=False)
class Process:
    """``is_shutting_down`` is lost when the process ends (facts 1.4, 1.7).

    ``rejections_left``: number of pods that it still rejects for a shutdown before it is stopped.
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
    descriptors: Descriptors = field(default_factory=Descriptors)
    rules: Rules = field(init=False)
    link: ApiServerLink = field(init=False)
    on_freeze: Callable[[], object] = field(default=lambda: None)
    _deferred_timers: list[Timer] = field(default_factory=list)
    _event_count: int = 0

    def __post_init__(self) -> None:
        self.rules = self.registry.rules
        self.link = ApiServerLink(self.sim, self, self.machine.network, self.rules.node_status.connection_timeout)

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
        if reason == self.rules.pods.shutdown_rejection[0]:
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


Resource = Literal["cpu", "memory", "disk", "pid"]


class MachineView(Protocol):
    """``index``: position in the LabSpec. ``files``: contents by path, ``hidden_files``: those
    over which /dev/null is mounted. ``swap``: active swap in bytes.

    ``is_stopping``: PID 1 stops the units and starts none.
    ``pressure``: resources that are short for a reason outside Kubernetes.
    """

    os: OperatingSystem
    index: int
    spec: NodeSpec
    name: str
    address: str
    kubelet_port: int
    machine_id: str
    container_id: str
    system_uuid: str
    boot_id: str
    swap: int
    state: Literal["on", "off"]
    is_stopping: bool
    files: dict[str, str]
    hidden_files: set[str]
    pressure: set[Resource]
    network: Network
    logind: Logind
    runtime: Runtime
    journal: Journal

    @property
    def kubelet_may_start(self) -> bool:
        """Whether a kubelet that starts keeps running."""

    def notify(self) -> None:
        """Report that the kubelet's process has started, stopped, or ended."""


_IDLE = 0.03  # CPU seconds a second for housekeeping and the relist of containers
_TASK = 0.02  # CPU seconds for one piece of work: a request, a sync
_FAIR = 0.5  # of a quota that housekeeping alone would use up: left for work besides it


class KubeletCpu:
    """``share`` of one CPU, None without a quota."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self.share: float | None = None
        self.on_limit: Callable[[], object] = lambda: None
        self._since = self._last_done = sim.now
        self._used = self._throttled = 0.0
        self._waiting: list[Timer] = []

    def limit(self, share: float | None) -> None:
        """Set or remove the quota. Without a quota the work that waits is done now."""
        self.on_limit()
        self._used, self._throttled = self.usage()
        self._since, self.share = self._sim.now, share
        if share is None:
            self._last_done, waiting, self._waiting = self._sim.now, self._waiting, []
            for timer in waiting:
                if not timer.cancelled and timer.due > self._sim.now:
                    timer.cancel()
                    self._sim.after(0.0, timer.call, *timer.args)

    def defer(self, call: Callable[..., Any], *args: Any) -> bool:
        """Call when the quota allows it; False, without a call, if there is no quota."""
        if self.share is None:
            return False
        rate = max(self.share - _IDLE, self.share * _FAIR)
        self._last_done = max(self._last_done, self._sim.now) + _TASK / rate
        self._waiting = [timer for timer in self._waiting if timer.due > self._sim.now]
        self._waiting.append(self._sim.at(self._last_done, call, *args))
        return True

    def usage(self) -> tuple[float, float]:
        """CPU seconds used and throttled seconds since the lab started."""
        passed = self._sim.now - self._since
        if self.share is None:
            return self._used + passed * _IDLE, self._throttled
        # housekeeping comes in bursts that use up a period's quota; the rest of the period is throttled
        busy = min(1.0, _IDLE / self.share)
        return self._used + passed * busy * self.share, self._throttled + passed * busy * (1 - self.share)
