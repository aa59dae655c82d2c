"""Prometheus: the experiment's queries, polled as conditions, and asked over the whole run at its end.

Nothing is seen while it does not answer, and while it scrapes nothing: its newest sample of ``up`` tells.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from chaos.model.clock_offset import ClockOffset
from chaos.model.duration import parse_duration
from chaos.model.errors import NodefallError
from chaos.model.experiment import Query
from chaos.model.ports import Clock, Sink
from chaos.model.recording import QueryResult, RecordingEntry, Series
from chaos.observers.blind_windows import BlindWindowTracker
from chaos.observers.observer_thread import ObserverThread
from chaos.observers.promql import PrometheusClient, PrometheusUnavailable

_NEWEST_SAMPLE = "max(timestamp(up))"
_QUERY = "ask"


class PrometheusObserver:
    """Times are told in the run's clock: the server's own is measured at every look (``offset``, seconds ahead)."""

    name = "prometheus"

    def __init__(self, server: PrometheusClient, queries: Sequence[Query], stale_after: float, clock: Clock) -> None:
        self._client, self._queries, self._stale_after, self._clock = server, list(queries), stale_after, clock
        self._blind_windows = BlindWindowTracker(self.name, clock, self._emit)
        self._thread = ObserverThread(self.name, clock, self._run, self._on_crash)
        self._sink: Sink | None = None
        self._lock = threading.Lock()  # the last look comes from another thread
        self._started_at = self._last_good = 0.0
        self._has_sample = False
        self.offset = self._offset_error = 0.0

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._started_at = self._last_good = self._clock.now()
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def has_synced(self) -> bool:
        return self._has_sample

    def offsets(self) -> dict[str, ClockOffset]:
        """How far its clock is ahead, once that is known."""
        return (
            {"Prometheus": ClockOffset(round(self.offset, 3), round(self._offset_error, 3))} if self._has_sample else {}
        )

    def final_sample(self) -> None:
        """The whole run once more, as Prometheus has it now."""
        with self._lock:
            try:
                for query in self._queries:
                    start, end = (t + self.offset for t in (self._started_at, self._clock.now()))
                    self._emit_result(
                        query, self._client.query_range(query.query, start, end, parse_duration(query.every))
                    )
            except NodefallError as error:
                self._blind_windows.open(_QUERY, self._last_good, error.message)

    def _emit(self, line: RecordingEntry) -> None:
        if self._sink and not self._thread.is_stopping:
            self._sink(line)

    def _on_crash(self, reason: str) -> None:
        self._blind_windows.open(_QUERY, self._last_good, reason)

    def _run(self) -> None:
        due = dict.fromkeys(self._queries, self._started_at)
        while not self._thread.is_stopping:
            with self._lock:
                now = self._clock.now()
                self._poll([query for query in self._queries if due[query] <= now])
            due = {query: max(at, now + parse_duration(query.every)) if at <= now else at for query, at in due.items()}
            self._thread.pause(max(0.0, min(due.values()) - self._clock.now()))

    def _poll(self, queries: Sequence[Query]) -> None:
        began = self._clock.now()
        try:
            self._check_freshness()
            for query in queries:
                self._emit_result(query, self._client.query(query.query))
        except NodefallError as error:
            self._blind_windows.open(_QUERY, self._last_good, error.message)
            return
        self._last_good, self._has_sample = began, True
        self._blind_windows.close(_QUERY)

    def _check_freshness(self) -> None:
        """Raises PrometheusLost where nothing was scraped of late."""
        before = self._clock.now()
        newest = self._client.query(_NEWEST_SAMPLE)
        server, scraped = newest[0].values[0] if newest else (0.0, None)
        if scraped is None:
            raise PrometheusUnavailable("Prometheus scrapes nothing: it has no sample of up")
        now = self._clock.now()
        self.offset = server - (before + now) / 2
        self._offset_error = (now - before) / 2
        if server - scraped > self._stale_after:
            raise PrometheusUnavailable(f"what Prometheus scraped last is {server - scraped:.0f}s old")

    def _emit_result(self, query: Query, found: Sequence[Series]) -> None:
        series = [Series(each.labels, [(round(t - self.offset, 3), v) for t, v in each.values]) for each in found]
        result = msgspec.Raw(msgspec.json.encode(QueryResult(query.query, series)))
        self._emit(RecordingEntry(self._clock.now(), "prometheus", query.name, result))
