"""Prometheus: the experiment's queries, polled as conditions, and asked over the whole run at its end.

Nothing is seen while it does not answer, and while it scrapes nothing: its newest sample of ``up`` tells.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from chaos.model.duration import parse_duration
from chaos.model.errors import NodefallError
from chaos.model.experiment import Query
from chaos.model.offset import Offset
from chaos.model.ports import Clock, Sink
from chaos.model.recording import Line, QueryResult, Series
from chaos.observers.promql import PrometheusLost, PromQL
from chaos.observers.sight import Sight
from chaos.observers.worker import Worker

_NEWEST = "max(timestamp(up))"
_ASK = "ask"


class PrometheusObserver:
    """Times are told in the run's clock: the server's own is measured at every look (``offset``, seconds ahead)."""

    name = "prometheus"

    def __init__(self, server: PromQL, queries: Sequence[Query], stale_after: float, clock: Clock) -> None:
        self._server, self._queries, self._stale, self._clock = server, list(queries), stale_after, clock
        self._sight = Sight(self.name, clock, self._emit)
        self._worker = Worker(self.name, clock, self._run, self._crashed)
        self._sink: Sink | None = None
        self._lock = threading.Lock()  # the last look comes from another thread
        self._began = self._good = 0.0
        self._seen = False
        self.offset = self._within = 0.0

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._began = self._good = self._clock.now()
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def synced(self) -> bool:
        return self._seen

    def offsets(self) -> dict[str, Offset]:
        """How far its clock is ahead, once that is known."""
        return {"Prometheus": Offset(round(self.offset, 3), round(self._within, 3))} if self._seen else {}

    def last_look(self) -> None:
        """The whole run once more, as Prometheus has it now."""
        with self._lock:
            try:
                for query in self._queries:
                    start, end = (t + self.offset for t in (self._began, self._clock.now()))
                    self._tell(query, self._server.over(query.query, start, end, parse_duration(query.every)))
            except NodefallError as error:
                self._sight.lost(_ASK, self._good, error.message)

    def _emit(self, line: Line) -> None:
        if self._sink and not self._worker.stopping:
            self._sink(line)

    def _crashed(self, reason: str) -> None:
        self._sight.lost(_ASK, self._good, reason)

    def _run(self) -> None:
        due = dict.fromkeys(self._queries, self._began)
        while not self._worker.stopping:
            with self._lock:
                now = self._clock.now()
                self._look([query for query in self._queries if due[query] <= now])
            due = {query: max(at, now + parse_duration(query.every)) if at <= now else at for query, at in due.items()}
            self._worker.pause(max(0.0, min(due.values()) - self._clock.now()))

    def _look(self, queries: Sequence[Query]) -> None:
        began = self._clock.now()
        try:
            self._fresh()
            for query in queries:
                self._tell(query, self._server.instant(query.query))
        except NodefallError as error:
            self._sight.lost(_ASK, self._good, error.message)
            return
        self._good, self._seen = began, True
        self._sight.regained(_ASK)

    def _fresh(self) -> None:
        """Raises PrometheusLost where nothing was scraped of late."""
        before = self._clock.now()
        newest = self._server.instant(_NEWEST)
        server, scraped = newest[0].values[0] if newest else (0.0, None)
        if scraped is None:
            raise PrometheusLost("Prometheus scrapes nothing: it has no sample of up")
        now = self._clock.now()
        self.offset = server - (before + now) / 2
        self._within = (now - before) / 2
        if server - scraped > self._stale:
            raise PrometheusLost(f"what Prometheus scraped last is {server - scraped:.0f}s old")

    def _tell(self, query: Query, found: Sequence[Series]) -> None:
        series = [Series(each.labels, [(round(t - self.offset, 3), v) for t, v in each.values]) for each in found]
        result = msgspec.Raw(msgspec.json.encode(QueryResult(query.query, series)))
        self._emit(Line(self._clock.now(), "prometheus", query.name, result))
