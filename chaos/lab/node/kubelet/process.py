"""What the parts of one kubelet process share. A process dies at once: none of its timers runs afterwards.

A stopped process (SIGSTOP) does nothing until it goes on, and then everything that has become due.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chaos.lab.apiserver.registry import Registry
from chaos.lab.node.kubelet.apiserver_link import ApiServerLink
from chaos.lab.node.kubelet.metrics import Metrics
from chaos.lab.objects.accessors import Object
from chaos.lab.objects.events import Recorder
from chaos.lab.sim.clock import SimClock, Timer
from chaos.lab.spec import LabSpec

if TYPE_CHECKING:
    from chaos.lab.node.machine import Machine

_EVENT_RETRY_TIMEOUT = 120.0  # client-go: 12 tries 10 s apart, then an event is dropped


@dataclass(slots=True, eq=False)
class Process:
    """``shutting_down`` is memory of the process only (facts 1.4, 1.7)."""

    sim: SimClock
    registry: Registry
    spec: LabSpec
    machine: Machine
    recorder: Recorder
    pid: int
    metrics: Metrics
    is_alive: bool = True
    is_shutting_down: bool = False
    is_frozen: bool = False
    start_time: float = field(default=0.0)
    link: ApiServerLink = field(init=False)
    _deferred_timers: list[Timer] = field(default_factory=list)
    _event_count: int = 0

    def __post_init__(self) -> None:
        self.link = ApiServerLink(self)

    @property
    def node(self) -> str:
        return self.machine.name

    def after(self, delay: float, call: Callable[..., Any], *args: Any) -> Timer:
        """As Sim.after, but nothing happens once the process is gone, or while it is stopped."""
        timer = self.sim.after(delay, call, *args)
        timer.guard = self._may_run
        return timer

    def after_jitter(self, low: float, high: float, call: Callable[..., Any], *args: Any) -> Timer:
        """After a seeded delay between the two, in seconds."""
        timer = self.sim.at(self.sim.now + self.sim.rng.uniform(low, high), call, *args)
        timer.guard = self._may_run
        return timer

    def freeze(self) -> None:
        """SIGSTOP."""
        self.is_frozen = True

    def thaw(self) -> None:
        """SIGCONT."""
        self.is_frozen = False
        due, self._deferred_timers = self._deferred_timers, []
        for timer in due:
            if not timer.cancelled:
                timer.run()

    def log(self, source: str, message: str, **values: object) -> None:
        """A line of level 1, written where the kubelet runs with ``--v=1`` or more."""
        if self.machine.spec.kubelet_verbosity:
            self.machine.journal.write(self.pid, source, message, **values)

    def emit(self, kind: str, obj: Object, reason: str, message: str, *, type_: str = "Normal") -> None:
        """An event, sent when the API server can be reached, unless that takes too long."""
        self._event_count += 1
        self.link.send(("event", self._event_count), self._emit, self.sim.now, kind, obj, reason, message, type_)

    def emit_node(self, reason: str, message: str, *, type_: str = "Normal") -> None:
        """An event about the own Node."""
        self.emit("Node", {"metadata": {"name": self.node}}, reason, message, type_=type_)

    def _emit(self, since: float, kind: str, obj: Object, reason: str, message: str, type_: str) -> None:
        if self.sim.now - since <= _EVENT_RETRY_TIMEOUT:
            self.recorder.emit(kind, obj, reason, message, type_=type_)

    def _may_run(self, timer: Timer) -> bool:
        if self.is_frozen:
            self._deferred_timers.append(timer)
        return self.is_alive and not self.is_frozen
