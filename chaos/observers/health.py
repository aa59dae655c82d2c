"""Health of the API server, probed once a second: distinguishes a quiet watch from a dead one."""

from __future__ import annotations

import threading
from typing import Protocol

from chaos.kube.errors import KubeRejected, KubeUnreachable
from chaos.kube.watch_stream import WatchApi
from chaos.model.clock_offset import ClockOffset, ClockOffsetBounds
from chaos.model.ports import Clock, Sink
from chaos.observers.observer_thread import ObserverThread

PERIOD = 1.0  # seconds of cluster time
PROBE_TIMEOUT = 2.0  # wall seconds
SLOW_THRESHOLD = 1.0  # seconds of cluster time: events that arrive later were not observed when they happened


class HealthListener(Protocol):
    """Called from the thread of the health probe."""

    def on_api_unavailable(self, since: float, reason: str) -> None:
        """``since`` is the begin of the last probe that succeeded."""

    def on_api_available(self) -> None: ...


class ApiHealth:
    """Probes /readyz. A failure, a slow response and a pause of this process all count as unavailable."""

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
        self._thread = ObserverThread(self.name, clock, self._run, self._report_failure)

    @property
    def last_good(self) -> float:
        """Begin of the last probe that succeeded; -inf before the first."""
        return self._last_good

    @property
    def reason(self) -> str:
        """Why the server is unavailable now, or ""."""
        return self._reason

    def offsets(self) -> dict[str, ClockOffset]:
        """How far the server's clock is ahead, once that is known."""
        offset = self._bounds.offset()
        return {"the API server": offset} if offset else {}

    def subscribe(self, listener: HealthListener) -> None:
        with self._lock:
            self._listeners.append(listener)

    def start(self, sink: Sink) -> None:  # noqa: ARG002 - part of the port; the listeners emit blind windows
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def has_synced(self) -> bool:
        return self._has_probed

    def _run(self) -> None:
        while not self._thread.is_stopping:
            self._probe()
            self._has_probed = True
            self._due = self._clock.now() + PERIOD
            self._thread.pause(PERIOD)

    def _probe(self) -> None:
        began = self._clock.now()
        if began - self._due > SLOW_THRESHOLD:
            self._report_failure(f"nodefall itself was paused for {began - self._due:.1f} s")
        try:
            date = self._api.probe(PROBE_TIMEOUT)
        except (KubeUnreachable, KubeRejected) as error:
            self._report_failure(error.message)
            return
        now = self._clock.now()
        if date is not None:  # truncated to whole seconds
            self._bounds.add(date - now, date + 1 - began)
        took = now - began
        if took > SLOW_THRESHOLD:
            self._report_failure(f"the API server took {took:.1f} s to respond")
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
