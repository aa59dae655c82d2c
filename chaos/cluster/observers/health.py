"""Health of the API server, probed once a second. It says how the server is, not what a watch has missed."""

from __future__ import annotations

from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.observers.observer_thread import ObserverThread
from chaos.cluster.watch_stream import WatchApi
from chaos.core.clock_offset import ClockOffset, ClockOffsetBounds
from chaos.core.ports import Clock, Sink

PERIOD = 1.0  # seconds of cluster time
PROBE_TIMEOUT = 2.0  # wall seconds
SLOW_THRESHOLD = 1.0  # seconds of cluster time


class ApiHealth:
    """Probes /readyz; a failure and a slow response count as unavailable. Also measures the server's clock."""

    name = "api-health"

    def __init__(self, api: WatchApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._reason = ""
        self._has_probed = False
        self._bounds = ClockOffsetBounds()
        self._thread = ObserverThread(self.name, clock, self._run, self._report_failure)

    @property
    def reason(self) -> str:
        """Why the server is unavailable now, or ""."""
        return self._reason

    def offsets(self) -> dict[str, ClockOffset]:
        """How far the server's clock is ahead, once that is known."""
        offset = self._bounds.offset()
        return {"the API server": offset} if offset else {}

    def start(self, sink: Sink) -> None:  # noqa: ARG002 - part of the port
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def has_synced(self) -> bool:
        return self._has_probed

    def _run(self) -> None:
        while not self._thread.is_stopping:
            self._probe()
            self._has_probed = True
            self._thread.pause(PERIOD)

    def _probe(self) -> None:
        began = self._clock.now()
        try:
            date = self._api.probe(PROBE_TIMEOUT)
        except (KubeUnreachable, KubeRejected) as error:
            self._reason = error.message
            return
        now = self._clock.now()
        if date is not None:  # truncated to whole seconds
            self._bounds.add(date - now, date + 1 - began)
        took = now - began
        self._reason = f"the API server took {took:.1f} s to respond" if took > SLOW_THRESHOLD else ""

    def _report_failure(self, reason: str) -> None:
        self._reason = reason
