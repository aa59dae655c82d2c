"""Gates against real HTTP servers that answer, hang, talk nonsense or never end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from chaos.app.day.gates import Deadlines, GateSources
from chaos.app.day.stop import DayHalted
from chaos.core.clock import SystemClock
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.core.prometheus import Prometheus
from chaos.engine.connection import ClusterConnection
from chaos.engine.stop import Interrupted
from chaos.gameday.document import Gate
from chaos.gameday.gate_check import GateResult, check_gate, check_gates
from tests.kit.web_server import Answer, Received, web_server

NOW = 1_000_000.0
UP = "max(timestamp(up))"
SECRET = "s3cret-t0ken-of-prometheus"


def gate(**declared: Any) -> Gate:
    made: Gate = TypeAdapter(Gate).validate_python(declared)
    return made


def sources(url: str = "", approved: Sequence[str] = (), on_wait: Callable[[], object] = lambda: None) -> GateSources:
    prometheus = Prometheus.model_validate({"url": url, "credentials": {"env": "GATE_TOKEN"}}) if url else None
    connection = cast("ClusterConnection", SimpleNamespace(inventory=SimpleNamespace(prometheus=prometheus)))
    return GateSources(
        connection,
        Path("reports"),
        (),
        "0123456789abcdef",
        lambda by: any(person in approved for person in by),
        Deadlines(SystemClock(), on_wait),
    )


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATE_TOKEN", SECRET)


def vector(*values: str | float, result: Any = None) -> bytes:
    series = [{"metric": {"n": str(n)}, "value": [NOW, str(value)]} for n, value in enumerate(values)]
    return success("vector", series if result is None else result)


def success(kind: str, result: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def prometheus(body: bytes, scraped: float = NOW - 5, status: int = 200) -> Callable[[Received], Answer]:
    """A Prometheus that has scraped, and answers every other query with ``body``."""

    def answer(request: Received) -> Answer:
        if request.query.get("query") == UP:
            return Answer(body=vector(scraped))
        return Answer(status, body)

    return answer


def ask(body: bytes, status: int = 200, **declared: Any) -> GateResult:
    fields: dict[str, Any] = {"kind": "prometheus", "query": "load", "atMost": 5} | declared
    with web_server(prometheus(body, status=status)) as server:
        result = check_gate(gate(**fields), sources(server.url))
        assert all(each.headers["authorization"] == f"Bearer {SECRET}" for each in server.received)
    assert SECRET not in result.reason
    return result


@pytest.mark.parametrize(
    ("body", "holds", "says"),
    [
        (vector(5), True, "5 of {n=0}"),
        (vector(1, 2, 3, 4, 5), True, "and 2 more"),
        (vector(1, 6, 2), False, "6 of {n=1}"),
        (vector(9, 8, 7, 6), False, "9 of {n=0}; 8 of {n=1}; 7 of {n=2} and 1 more"),
        (success("scalar", [NOW, "4"]), True, "4"),
        (vector(), None, "the result has no series"),
        (vector("NaN"), None, "is not a number"),
        (vector(1, "+Inf"), None, "the value of {n=1} is not a number"),
        (vector(9, "NaN"), None, "is not a number"),
        (success("string", [NOW, "five"]), None, "invalid response"),
        (success("matrix", [{"metric": {}, "values": [[1, "1"], [2, "1"]]}]), None, "a range"),
        (success("matrix", [{"metric": {}, "values": []}]), None, "a range"),
        (vector(*range(501)), None, "501 series"),
        (b"<html>login</html>", None, "JSON"),
        (b'{"status": "success"}', None, "Prometheus at"),
        (b"", None, "Prometheus at"),
        (b"\xff\xfe\x00", None, "Prometheus at"),
    ],
)
def test_every_series_must_be_within_the_limits(body: bytes, holds: bool | None, says: str) -> None:
    result = ask(body)
    assert (result.holds, says in result.reason) == (holds, True), result
    assert result.gate == "load is at most 5"


@pytest.mark.parametrize(
    ("least", "most", "holds"), [(1, None, True), (3, None, False), (None, 1, False), (1, 2, True), (2, 2, True)]
)
def test_limits(least: float | None, most: float | None, holds: bool) -> None:
    assert ask(vector(2), atLeast=least, atMost=most).holds is holds


@pytest.mark.parametrize(
    ("status", "says"),
    [(401, "401"), (403, "403"), (400, "400"), (422, "422"), (500, "500"), (503, "503"), (404, "404")],
)
def test_an_error_of_prometheus_is_no_answer(status: int, says: str) -> None:
    result = ask(b'{"error": "no"}', status)
    assert result.holds is None
    assert says in result.reason or "rejects" in result.reason


def test_old_data_is_no_answer() -> None:
    with web_server(prometheus(vector(1), scraped=NOW - 600)) as server:
        result = check_gate(gate(kind="prometheus", query="load", atMost=5), sources(server.url))
    assert (result.holds, result.reason) == (None, "the newest sample of Prometheus is 600 s old")


def test_a_server_that_hangs_is_left_at_the_deadline_and_not_called_twice() -> None:
    with web_server(Answer(hang=True)) as server:
        given, slow = sources(server.url), gate(kind="prometheus", query="load", atMost=5, timeout="300ms")
        first, second = check_gates([slow, slow], given)
        assert len(server.received) == 1
    assert first == GateResult("load is at most 5", None, "load is at most 5: no answer within 0.3s")
    assert second.holds is None
    assert "no response yet" in second.reason


def test_a_body_without_an_end_is_cut_off() -> None:
    def answer(request: Received) -> Answer:
        return Answer(body=vector(NOW)) if request.query.get("query") == UP else Answer(endless=True)

    with web_server(answer) as server:
        result = check_gate(gate(kind="prometheus", query="load", atMost=5), sources(server.url))
        page = check_gate(gate(kind="http", url=f"{server.url}/x", contains="ok"), sources())
    assert result.holds is None
    assert "longer than 10000000 bytes" in result.reason
    assert (page.holds, page.reason) == (None, f"{server.url}: its response is longer than 1000000 bytes")


def test_no_prometheus_in_the_inventory() -> None:
    result = check_gate(gate(kind="no-alerts"), sources())
    assert (result.holds, result.reason) == (None, "no prometheus in the inventory")


def test_a_secret_that_is_not_there_is_named_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GATE_TOKEN")
    result = check_gate(gate(kind="no-alerts"), sources("http://127.0.0.1:1"))
    assert (result.holds, "GATE_TOKEN is not set" in result.reason) == (None, True)


@pytest.mark.parametrize(
    ("value", "holds", "says"),
    [
        (0.5, True, "0.5"),
        (1, True, "1"),
        (0.49, False, "0.49"),
        (-0.2, False, "-0.2"),
        (50, None, "is not between 0 and 1"),
        ("NaN", None, "not a number"),
    ],
)
def test_an_error_budget_is_a_part(value: Any, holds: bool | None, says: str) -> None:
    result = _budget(value)
    assert (result.holds, says in result.reason) == (holds, True), result


def _budget(value: Any) -> GateResult:
    with web_server(prometheus(vector(value))) as server:
        return check_gate(gate(kind="error-budget", query="left", atLeast=0.5), sources(server.url))


@pytest.mark.parametrize(
    ("answer", "contains", "holds", "says"),
    [
        (Answer(200, b"all well"), None, True, "it answers 200"),
        (Answer(200, b"all well"), "well", True, "it answers 200"),
        (Answer(200, b"all ill"), "well", False, "without 'well' in 7 bytes"),
        (Answer(204, b""), None, False, "it answers 204"),
        (Answer(302, b"", {"Location": "http://127.0.0.1:1/"}), None, False, "redirects are not followed"),
        (Answer(401), None, False, "it answers 401"),
        (Answer(500), None, False, "it answers 500"),
        (Answer(200, b"", {"Content-Encoding": "gzip"}), None, True, "200"),
        (Answer(200, b"not gzip", {"Content-Encoding": "gzip"}), "x", None, "http://127.0.0.1"),
        (Answer(endless=True), None, True, "it answers 200"),
    ],
)
def test_urls(answer: Answer, contains: str | None, holds: bool | None, says: str) -> None:
    with web_server(answer) as server:
        given = gate(kind="http", url=f"{server.url}/ready?key=hidden", contains=contains)
        result = check_gate(given, sources())
        assert server.paths() == ["GET /ready"]
    assert (result.holds, says in result.reason) == (holds, True), result
    assert "hidden" not in result.gate + result.reason


def test_another_status_can_be_expected() -> None:
    with web_server(Answer(401)) as server:
        assert check_gate(gate(kind="http", url=server.url, status=401), sources()).holds is True


def test_a_url_without_a_server() -> None:
    with web_server() as server:
        pass
    result = check_gate(gate(kind="http", url=f"{server.url}/?key=hidden"), sources())
    assert (result.holds, result.reason) == (None, f"{server.url}: connection refused")


def rule(name: str, health: str = "ok", state: str = "inactive", **labels: str) -> dict[str, Any]:
    alerts = [{"labels": {"alertname": name, "node": "w1", **labels}, "state": state}] if state != "inactive" else []
    error = "" if health == "ok" else "many-to-many matching"
    return {
        "type": "alerting",
        "name": name,
        "labels": labels,
        "health": health,
        "lastError": error,
        "state": state,
        "alerts": alerts,
    }


def rules(*given: dict[str, Any]) -> bytes:
    groups = [{"name": "g", "rules": [*given, {"type": "recording", "name": "r", "health": "ok"}]}]
    return json.dumps({"status": "success", "data": {"groups": groups}}).encode()


QUIET, LOUD = rule("Quiet", severity="info"), rule("Loud", state="firing", severity="critical")


@pytest.mark.parametrize(
    ("body", "labels", "holds", "says"),
    [
        (rules(QUIET), {}, True, "none of 1 alerting rules fires"),
        (rules(QUIET, LOUD), {}, False, "firing: Loud{node=w1, severity=critical}"),
        (rules(QUIET, LOUD), {"severity": "critical"}, False, "Loud"),
        (rules(QUIET, LOUD), {"severity": "info"}, True, "none of 1"),
        (rules(QUIET, LOUD), {"node": "w2"}, True, "none of 2"),
        (rules(QUIET, LOUD), {"alertname": "Loud"}, False, "Loud"),
        (rules(rule("Soon", state="pending")), {}, True, "none of 1"),
        (rules(), {}, None, "no alerting rule"),
        (rules(QUIET), {"severity": "critical"}, None, "no alerting rule"),
        (rules(QUIET, rule("Broken", "err")), {}, None, "a rule cannot be evaluated: Broken: many-to-many matching"),
        (rules(rule("New", "unknown")), {}, None, "New"),
        (rules(LOUD, rule("Broken", "err")), {}, False, "Loud"),
        (rules(QUIET, rule("Broken", "err", severity="warning")), {"severity": "info"}, True, "none of 1"),
        (b'{"status": "error"}', {}, None, "status 'error'"),
        (b'{"status": "success", "data": {"groups": null}}', {}, None, "no rules of Prometheus"),
        (b"[]", {}, None, "no rules of Prometheus"),
        (b"<html>", {}, None, "no rules of Prometheus"),
    ],
)
def test_alerts(body: bytes, labels: dict[str, str], holds: bool | None, says: str) -> None:
    with web_server(prometheus(body)) as server:
        result = check_gate(gate(kind="no-alerts", matchLabels=labels), sources(server.url))
    assert (result.holds, says in result.reason) == (holds, True), result


@pytest.mark.parametrize("status", [301, 401, 404, 500])
def test_alerts_of_a_server_that_refuses(status: int) -> None:
    with web_server(prometheus(rules(QUIET), status=status)) as server:
        result = check_gate(gate(kind="no-alerts"), sources(server.url))
    assert (result.holds, str(status) in result.reason) == (None, True), result


def test_approvals() -> None:
    given = gate(kind="approval", by=["ada", "grace"])
    assert check_gate(given, sources(approved=["grace"])).holds is True
    result = check_gate(given, sources(approved=["mallory"]))
    assert (result.holds, result.reason) == (False, "plan 0123456789ab awaits ada or grace")


@pytest.mark.parametrize("error", [DayHalted("halted by ada"), Aborted("taken over"), Interrupted(15)])
def test_what_stops_the_day_is_no_answer_of_the_gate(error: Exception) -> None:
    with web_server(Answer(hang=True)) as server, pytest.raises(type(error)):
        check_gate(gate(kind="http", url=server.url), sources(on_wait=lambda: _raise(error)))


class TestDeadlines:
    def test_errors_pass_and_bugs_are_errors(self, caplog: pytest.LogCaptureFixture) -> None:
        deadlines = Deadlines(SystemClock())
        with pytest.raises(Refused, match="no"):
            deadlines.within(5, "a", lambda: _raise(Refused("no")))
        with pytest.raises(NodefallError, match="lost") as raised:
            deadlines.within(5, "a", lambda: _raise(Aborted("lost")))
        assert not isinstance(raised.value, Aborted), "only on_wait stops the day"
        with pytest.raises(NodefallError, match="unexpected ZeroDivisionError"):
            deadlines.within(5, "a", lambda: 1 // 0)
        assert "ZeroDivisionError" in caplog.text

    def test_what_ended_late_may_be_repeated(self) -> None:
        deadlines, gone = Deadlines(SystemClock()), threading.Event()
        with pytest.raises(NodefallError, match="no answer within"):
            deadlines.within(0.1, "a", lambda: gone.wait(20))
        with pytest.raises(NodefallError, match="no response yet"):
            deadlines.within(5, "a", lambda: True)
        assert deadlines.within(5, "b", lambda: 7) == 7
        gone.set()
        deadlines._running["a"].join(20)
        assert deadlines.within(5, "a", lambda: 8) == 8


def _raise(error: Exception) -> None:
    raise error
