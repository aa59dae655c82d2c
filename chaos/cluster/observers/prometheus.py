"""Prometheus: the experiment's queries, polled during the run, and over the whole run at its end.

A blind window while Prometheus does not respond or scrapes nothing, as its newest sample of ``up`` shows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from chaos.cluster.observers.base import ThreadedObserver
from chaos.cluster.observers.plugin import ObserverContext
from chaos.cluster.observers.promql import MAX_BYTES, PrometheusClient, PrometheusUnavailable, Tls
from chaos.cluster.observers.selectors import newest_of
from chaos.core.duration import parse_duration
from chaos.core.errors import NodefallError, Refused, bad_input
from chaos.core.field_types import Secret
from chaos.core.inventory import Inventory
from chaos.core.ports import Clock, Sink
from chaos.core.probes import Query
from chaos.core.prometheus import Prometheus
from chaos.core.recording import EntryKind, QueryResult, RecordingEntry, Series
from chaos.core.time_bounds import ClockOffset
from chaos.core.trusted_files import refuse_untrusted_file

_NEWEST_SAMPLE = "max(timestamp(up))"


class PrometheusObserver(ThreadedObserver):
    """Times are in the run's clock; the server's clock is measured at every poll (``offset``, seconds ahead)."""

    def __init__(
        self, client: PrometheusClient, queries: Sequence[Query], stale_after: float, clock: Clock, freshness: str = ""
    ) -> None:
        super().__init__("prometheus", "prometheus", clock)
        self._client, self._queries, self._stale_after = client, list(queries), stale_after
        self._freshness = freshness_queries(freshness, [query.query for query in queries])
        self._lock = threading.Lock()  # the final sample is taken in another thread
        self._started_at = self._last_good = 0.0
        self.offset = self._offset_error = 0.0

    def start(self, sink: Sink) -> None:
        self._started_at = self._last_good = self._clock.now()
        super().start(sink)

    def offsets(self) -> dict[str, ClockOffset]:
        """The offset of the server's clock, once it is known."""
        return (
            {"Prometheus": ClockOffset(round(self.offset, 3), round(self._offset_error, 3))} if self._has_synced else {}
        )

    def final_sample(self) -> None:
        """Query the whole run, with the samples that Prometheus has now."""
        with self._lock:
            try:
                for query in self._queries:
                    start, end = (t + self.offset for t in (self._started_at, self._clock.now()))
                    self._emit_result(
                        query, self._client.query_range(query.query, start, end, parse_duration(query.every))
                    )
            except NodefallError as error:
                self._blind_windows.open(self.cause, self._last_good, error.message)

    def _blind_since(self) -> float:
        return self._last_good

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
            results = [(query, self._client.query(query.query)) for query in queries]
        except NodefallError as error:
            self._blind_windows.open(self.cause, self._last_good, error.message)
            return
        self._last_good, self._has_synced = began, True
        self._blind_windows.close(self.cause)  # before the samples that end it
        for query, result in results:
            self._emit_result(query, result)

    def _check_freshness(self) -> None:
        """Raises PrometheusUnavailable if Prometheus has not scraped recently."""
        before = self._clock.now()
        server, scraped = _newest_sample(self._client, self._freshness)
        now = self._clock.now()
        self.offset = server - (before + now) / 2
        self._offset_error = (now - before) / 2
        _refuse_stale(server - scraped, self._stale_after)

    def _emit_result(self, query: Query, result: Sequence[Series]) -> None:
        series = [Series(each.labels, [(round(t - self.offset, 3), v) for t, v in each.values]) for each in result]
        value = msgspec.Raw(msgspec.json.encode(QueryResult(query.query, series)))
        self._emit(RecordingEntry(self._clock.now(), EntryKind.PROMETHEUS, query.name, value))


def prometheus_settings(inventory: Inventory) -> Prometheus:
    """The settings in the inventory. Raises Refused if the inventory has none."""
    if inventory.prometheus is None:
        raise Refused(
            "no prometheus in the inventory: the experiment queries it",
            hint="add prometheus: {url: ...} to the inventory",
        )
    return inventory.prometheus


def freshness_queries(given: str, queries: Sequence[str]) -> list[str]:
    """Queries for the time of the newest sample; they are tried until one has an answer.

    ``given``: that of the inventory; otherwise ``up``, and where nothing is scraped the metrics in ``queries``.
    """
    return [given] if given else [_NEWEST_SAMPLE, *filter(None, [newest_of(list(queries))])]


def check_freshness(client: PrometheusClient, settings: Prometheus, queries: Sequence[str] = ()) -> None:
    """Raises PrometheusUnavailable if the newest sample is older than the settings allow."""
    server, scraped = _newest_sample(client, freshness_queries(settings.freshness or "", queries))
    _refuse_stale(server - scraped, parse_duration(settings.stale_after))


def _newest_sample(client: PrometheusClient, candidates: Sequence[str]) -> tuple[float, float]:
    """The time of the server and the time of its newest sample. Raises PrometheusUnavailable without a sample."""
    for query in candidates:
        known = [each.values[0] for each in client.query(query) if each.values]
        times = [(server, newest) for server, newest in known if newest is not None]
        if times:
            server, newest = max(times, key=lambda pair: pair[1])
            if newest < server / 2:
                raise PrometheusUnavailable(f"{query} gives {newest:g}, which is not a time in seconds since 1970")
            return server, newest
    if candidates[0] != _NEWEST_SAMPLE:
        raise PrometheusUnavailable(f"Prometheus has no answer to {candidates[0]}", hint="correct prometheus.freshness")
    hint = "set prometheus.freshness in the inventory to a query for the time of the newest sample"
    raise PrometheusUnavailable("Prometheus scrapes nothing: no sample of up", hint=hint)


def _refuse_stale(age: float, stale_after: float) -> None:
    if age > stale_after:
        hint = "check its targets, or set prometheus.staleAfter or prometheus.freshness in the inventory"
        raise PrometheusUnavailable(f"the newest sample of Prometheus is {age:.0f} s old", hint=hint)


def make_client(
    settings: Prometheus, read_secret: Callable[[Secret], str], max_bytes: int = MAX_BYTES
) -> PrometheusClient:
    """A client that has not connected yet; ``max_bytes``: of one answer.

    Raises Refused if a secret is unreadable, BadInput for files that do not exist, or that others can write.
    """
    files = {"ca": settings.ca, "clientCertificate": settings.client_certificate, "clientKey": settings.client_key}
    for key, path in files.items():
        if path and not Path(path).is_file():
            raise bad_input(path, "there is no such file", f"prometheus.{key} in the inventory names it")
        if path:
            refuse_untrusted_file(Path(path))
    token = read_secret(settings.credentials) if settings.credentials else ""
    texts = {"credentials": token}
    for name, value in settings.headers.items():
        texts[f"headers.{name}"] = value if isinstance(value, str) else read_secret(value)
    for key, text in texts.items():
        if not all(character.isprintable() or character == "\t" for character in text):
            raise Refused(f"prometheus.{key}: the secret has a line break in it", hint="remove it")
    headers = {name: texts[f"headers.{name}"] for name in settings.headers}
    tls = Tls(
        settings.ca or "",
        settings.client_certificate or "",
        settings.client_key or "",
        verifies=not settings.insecure_skip_verify,
    )
    return PrometheusClient(settings.url, token, settings.user or "", max_bytes, headers=headers, tls=tls)


class PrometheusPlugin:
    name = "prometheus"

    def build(self, context: ObserverContext) -> list[PrometheusObserver]:
        queries = context.experiment.spec.queries
        if not queries:
            return []
        settings = prometheus_settings(context.inventory)
        client = make_client(settings, context.read_secret)
        stale_after, freshness = parse_duration(settings.stale_after), settings.freshness or ""
        return [PrometheusObserver(client, queries, stale_after, context.clock, freshness)]


OBSERVER = PrometheusPlugin()
