"""Prometheus: its responses, its errors, and its blind windows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from chaos.cluster.observers.prometheus import PrometheusObserver
from chaos.cluster.observers.promql import PrometheusClient, PrometheusUnavailable, QueryRefused
from chaos.core.errors import NodefallError
from chaos.core.probes import Query
from chaos.core.recording import QueryResult, Series
from tests.kit.misbehaving import KubeServer, Lines, serving
from tests.kit.turn_clock import TurnClock

VECTOR = [{"metric": {"node": "a"}, "value": [5.5, "1"]}, {"metric": {}, "value": [5.5, "NaN"]}]
MATRIX = [{"metric": {"node": "a"}, "values": [[5, "1"], [6, "+Inf"], [7, "2.5"]]}]


def success(result: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "x", "result": result}}).encode()


def failure(text: str) -> bytes:
    return json.dumps({"status": "error", "errorType": "bad_data", "error": text}).encode()


@pytest.mark.parametrize(
    ("result", "series"),
    [
        (VECTOR, [Series({"node": "a"}, [(5.5, 1.0)]), Series({}, [(5.5, None)])]),
        (MATRIX, [Series({"node": "a"}, [(5.0, 1.0), (6.0, None), (7.0, 2.5)])]),
        ([5.5, "3"], [Series({}, [(5.5, 3.0)])]),
        ([], []),
    ],
)
def test_answers(result: Any, series: list[Series]) -> None:
    server = KubeServer()
    server.answers |= {"/p/api/v1/query": (200, success(result)), "/p/api/v1/query_range": (200, success(result))}
    with serving(server) as port:
        prometheus = PrometheusClient(f"http://127.0.0.1:{port}/p/", "t0ken")
        assert prometheus.query('up{a="b"}') == series
        assert prometheus.query_range("up", 5.0, 65.0, 5.0) == series
    (_, first), (_, second) = server.requests
    assert first == {"query": 'up{a="b"}'}
    assert second == {"query": "up", "start": "5", "end": "65", "step": "5"}
    assert [headers["authorization"] for headers in server.headers] == ["Bearer t0ken"] * 2


def test_a_long_run_is_queried_in_longer_steps() -> None:
    server = KubeServer()
    server.answers["/api/v1/query_range"] = (200, success([]))
    with serving(server) as port:
        PrometheusClient(f"http://127.0.0.1:{port}", "pw", "me").query_range("up", 0.0, 100000.0, 1.0)
    assert server.requests[0][1]["step"] == "10"
    assert server.headers[0]["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (400, failure('parse error: unexpected "{"'), QueryRefused, 'parse error: unexpected "{"'),
        (422, failure("many-to-many matching"), QueryRefused, "many-to-many matching"),
        (400, b"<html>a proxy</html>", PrometheusUnavailable, "Prometheus answers 400"),
        (401, b"", PrometheusUnavailable, "Prometheus answers 401"),
        (503, failure("query timed out"), PrometheusUnavailable, "503 query timed out"),
        (200, b"<html>login</html>", PrometheusUnavailable, "JSON"),
        (200, b'{"data": []}', PrometheusUnavailable, "Prometheus at"),
        (200, success([{"value": [1, "1"]}]), PrometheusUnavailable, "invalid response"),
        (200, success([{"metric": {}, "value": ["x"]}]), PrometheusUnavailable, "invalid response"),
        (200, success([{"metric": {"n": str(n)}, "value": [1, "1"]} for n in range(501)]), QueryRefused, "aggregate"),
    ],
)
def test_invalid_responses(status: int, body: bytes, kind: type[NodefallError], says: str) -> None:
    server = KubeServer()
    server.answers["/api/v1/query"] = (status, body)
    with serving(server) as port, pytest.raises(kind) as caught:
        PrometheusClient(f"http://127.0.0.1:{port}").query("up{")
    assert says in f"{caught.value.message} {caught.value.hint}"


def test_no_server() -> None:
    with serving(KubeServer()) as port:
        pass
    with pytest.raises(PrometheusUnavailable, match=f"Prometheus at http://127.0.0.1:{port}: connection refused"):
        PrometheusClient(f"http://127.0.0.1:{port}").query("up")


class Server(PrometheusClient):
    """A Prometheus whose clock is ``ahead`` of ours, and that scraped ``age`` seconds ago."""

    def __init__(self, clock: TurnClock) -> None:
        super().__init__("http://unused")
        self.clock, self.ahead, self.age = clock, 30.0, 1.0
        self.lost = False
        self.received: list[str] = []

    def _now(self) -> float:
        if self.lost:
            raise PrometheusUnavailable("connection refused")
        return self.clock.now() + self.ahead

    def query(self, query: str) -> list[Series]:
        now = self._now()
        self.received.append(query)
        return [Series({}, [(now, now - self.age if "timestamp" in query else 7.0)])] if self.age >= 0 else []

    def query_range(self, query: str, start: float, end: float, step: float) -> list[Series]:
        self._now()
        return [Series({"q": query}, [(start, 1.0), (end, step)])]


class Watched:
    """An observer with two queries, and what it recorded."""

    def __init__(self) -> None:
        self.clock, self.lines = TurnClock(), Lines()
        self.server = Server(self.clock)
        queries = [Query(name="quick", query="a", every="2s"), Query(name="slow", query="b", every="10s")]
        self.observer = PrometheusObserver(self.server, queries, 20.0, self.clock)

    def start(self) -> None:
        self.observer.start(self.lines)

    def until(self, holds: Callable[[], bool]) -> None:
        self.clock.until(holds)

    def results(self, name: str) -> list[tuple[float, QueryResult]]:
        lines = [line for line in self.lines.of("prometheus") if line.type == name]
        return [(line.t, msgspec.json.decode(line.object, type=QueryResult)) for line in lines]

    def stop(self) -> None:
        self.observer.stop()
        self.clock.close()


def test_queries_are_polled_in_the_runs_clock() -> None:
    watched = Watched()
    watched.start()
    watched.until(lambda: len(watched.results("quick")) >= 6)
    watched.observer.final_sample()
    watched.stop()
    assert watched.observer.has_synced()
    assert 2 <= len(watched.results("slow")) <= 3, "each at its own pace, and once over all"
    for t, result in watched.results("quick")[:6]:
        assert result.query == "a"
        ((at, value),) = result.series[0].values
        assert at == pytest.approx(t)
        assert value == 7.0
    (start, _), (end, step) = watched.results("quick")[-1][1].series[0].values
    assert start == pytest.approx(1000.0)
    assert step == 2.0
    assert end == pytest.approx(watched.results("quick")[-1][0])
    assert watched.lines.windows() == []
    assert watched.observer.offset == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("age", "lost", "why"),
    [
        (1.0, True, "connection refused"),
        (21.0, False, "the newest sample of Prometheus is 21 s old"),
        (-1.0, False, "Prometheus scrapes nothing: no sample of up"),
    ],
)
def test_stale_samples_are_a_blind_window(age: float, lost: bool, why: str) -> None:
    watched = Watched()
    watched.start()
    watched.until(lambda: len(watched.results("quick")) >= 2)
    good = watched.results("quick")[-1][0]
    watched.server.age, watched.server.lost = age, lost
    watched.until(lambda: bool(watched.lines.windows()))
    watched.server.age, watched.server.lost = 1.0, False
    watched.until(lambda: watched.lines.windows()[-1][1] is not None)
    watched.stop()
    opened, closed = watched.lines.windows()
    assert opened[1:] == (None, why)
    assert opened[0] == pytest.approx(good, abs=3.0)
    assert closed[0] == opened[0]
    assert {line.type for line in watched.lines.of("blind")} == {"prometheus"}


def test_the_first_samples_after_a_blind_window_follow_its_end() -> None:
    """So none has a time within it, however long the queries take."""
    watched = Watched()
    watched.start()
    watched.until(lambda: len(watched.results("quick")) >= 2)
    watched.server.lost = True
    watched.until(lambda: bool(watched.lines.windows()))
    known = len(watched.results("quick"))
    watched.server.lost = False
    watched.until(lambda: len(watched.results("quick")) > known)
    watched.stop()
    kinds = [line.kind for line in watched.lines.all]
    opened, closed = (index for index, kind in enumerate(kinds) if kind == "blind")
    assert set(kinds[opened + 1 : closed]) == set()


def test_a_prometheus_that_never_answers_is_never_synced() -> None:
    watched = Watched()
    watched.server.lost = True
    watched.start()
    watched.until(lambda: bool(watched.lines.windows()))
    watched.observer.final_sample()
    watched.stop()
    assert not watched.observer.has_synced()
    assert watched.lines.windows() == [(1000.0, None, "connection refused")]
    assert watched.lines.of("prometheus") == []
