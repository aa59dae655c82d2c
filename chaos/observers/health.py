"""A look at the API server every second, so that a silent watch is known to be a quiet one."""

from __future__ import annotations

import threading
from typing import Protocol

from chaos.kube.errors import KubeRejected, KubeUnreachable
from chaos.kube.watch_stream import WatchApi
from chaos.model.clock_offset import ClockOffset, ClockOffsetBounds
from chaos.model.ports import Clock, Sink
from chaos.observers.observer_thread import ObserverThread

PERIOD = 1.0  # seconds of cluster time
PROBE_TIMEOUT = 2.0  # wall seconds for an answer
SLOW_THRESHOLD = 1.0  # seconds of cluster time: events that come so late were not seen when they happened


class HealthListener(Protocol):
    """Told from the health check's thread."""

    def on_api_unavailable(self, since: float, reason: str) -> None:
        """The server last answered what was asked at ``since``."""

    def on_api_available(self) -> None: ...


class ApiHealth:
    """Asks for /readyz; a failure, a slow answer and a pause of our own process all count as not seeing."""

    name = "api-health"

    def __init__(self, api: WatchApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._lock = threading.Lock()
        self._listeners: list[HealthListener] = []
        self._last_good = float("-inf")
        self._due = float("inf")
        self._reason = ""
        self._has_probed = False
        self._bounds = ClockOffsetBounds()
        self._worker = ObserverThread(self.name, clock, self._run, self._report_failure)

    @property
    def last_good(self) -> float:
        """When the last question that was answered well was asked; -inf before the first."""
        return self._last_good

    @property
    def reason(self) -> str:
        """Why the server cannot be seen now; "" if it can."""
        return self._reason

    def offsets(self) -> dict[str, ClockOffset]:
        """How far the server's clock is ahead, once that is known."""
        offset = self._bounds.offset()
        return {"the API server": offset} if offset else {}

    def subscribe(self, listener: HealthListener) -> None:
        with self._lock:
            self._listeners.append(listener)

    def start(self, sink: Sink) -> None:  # noqa: ARG002 - a port; its listeners emit what it means
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def has_synced(self) -> bool:
        return self._has_probed

    def _run(self) -> None:
        while not self._worker.is_stopping:
            self._probe()
            self._has_probed = True
            self._due = self._clock.now() + PERIOD
            self._worker.pause(PERIOD)

    def _probe(self) -> None:
        began = self._clock.now()
        if began - self._due > SLOW_THRESHOLD:
            self._report_failure(f"nodefall itself stood still for {began - self._due:.1f}s")
        try:
            date = self._api.probe(PROBE_TIMEOUT)
        except (KubeUnreachable, KubeRejected) as error:
            self._report_failure(error.message)
            return
        now = self._clock.now()
        if date is not None:  # its seconds are cut off
            self._bounds.add(date - now, date + 1 - began)
        took = now - began
        if took > SLOW_THRESHOLD:
            self._report_failure(f"the API server took {took:.1f}s to answer")
            return
        self._last_good = began
        if self._reason:
            self._reason = ""
            for listener in self._listener_snapshot():
                listener.on_api_available()

    def _report_failure(self, reason: str) -> None:
        if not self._reason:
            self._reason = reason
            for listener in self._listener_snapshot():
                listener.on_api_unavailable(self._last_good, reason)

    def _listener_snapshot(self) -> list[HealthListener]:
        with self._lock:
            return list(self._listeners)
