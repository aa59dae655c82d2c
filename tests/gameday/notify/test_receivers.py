"""Each kind of receiver against a stand-in on loopback that checks the published format of its requests."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from chaos.core.errors import NodefallError
from chaos.gameday.events import DayEvent, EventKind, slack_message
from chaos.gameday.notify.receivers import (
    EVENT,
    SIGNATURE,
    Alertmanager,
    Chat,
    Grafana,
    Pushgateway,
    TextfileCollector,
    Webhook,
    day_metrics,
    signature,
)
from chaos.reports.run.openmetrics import entry_metrics
from tests.kit.day_events import NOW, event, quick
from tests.kit.web_server import Answer, Received, web_server

KEY = "a key that two sides know"
EVERY = [event(kind) for kind in EventKind]
HOSTILE = event(
    EventKind.ENTRY_ENDS,
    reason='<!channel> @here [x](https://x) & "quotes" \u202e \x00 \ud800 ' + "x" * 5000,
    report="https://x/?a=1&b=2",
)


def verify(key: str, header: str, body: bytes, now: float) -> bool:
    """The way of docs/gameday.md to verify a signature."""
    fields = dict(part.split("=", 1) for part in header.split(","))
    expected = hmac.new(key.encode(), f"{fields['t']}.".encode() + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, fields["v1"]) and abs(now - int(fields["t"])) <= 300


class TestWebhook:
    def test_bodies_are_signed_with_their_time(self) -> None:
        with web_server() as server:
            Webhook(f"{server.url}/hook", KEY, quick(), lambda: NOW + 5).deliver(event(EventKind.ENTRY_ENDS))
        (request,) = server.received
        header = request.headers[SIGNATURE.lower()]
        assert header.startswith(f"t={int(NOW) + 5},v1=")
        assert verify(KEY, header, request.body, NOW)
        assert not verify("another", header, request.body, NOW)
        assert not verify(KEY, header, request.body + b" ", NOW)
        assert not verify(KEY, header.replace("t=1", "t=2"), request.body, NOW), "the time is signed, too"
        assert not verify(KEY, header, request.body, NOW + 3600), "replayed later"
        assert request.headers[EVENT.lower()] == "entry-ends"
        assert request.headers["content-type"] == "application/json"

    def test_a_known_signature(self) -> None:
        """As of: printf '17.{}' | openssl dgst -sha256 -hmac secret."""
        known = "8af83b0673ef7fdabfca93bc1f9c0893a4de95938051a9959b16f9e2a9e16802"
        assert signature("secret", b"{}", 17) == f"t=17,v1={known}"

    @pytest.mark.parametrize("sent", [*EVERY, HOSTILE], ids=lambda sent: str(sent.kind))
    def test_documents(self, sent: DayEvent) -> None:
        with web_server() as server:
            Webhook(server.url, "", quick(), lambda: NOW).deliver(sent)
        (request,) = server.received
        assert SIGNATURE.lower() not in request.headers
        body = request.json
        assert (body["version"], body["event"], body["gameday"]) == (1, sent.kind, "monthly")
        assert datetime.fromisoformat(body["time"]).timestamp() == sent.at
        assert "monthly" in body["text"]

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
    def test_what_may_succeed_later_is_repeated(self, status: int) -> None:
        answers = iter([Answer(status), Answer(status), Answer(200)])
        with web_server(lambda _: next(answers)) as server:
            Webhook(server.url, KEY, quick(), lambda: NOW).deliver(event(EventKind.HALTED))
        assert len(server.received) == 3
        assert len({request.headers[SIGNATURE.lower()] for request in server.received}) == 1

    @pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 410])
    def test_what_is_refused_is_not_repeated(self, status: int) -> None:
        with web_server(Answer(status, b"no such \x1bhook")) as server:
            hook = Webhook(f"{server.url}/secret-path", KEY, quick(), lambda: NOW)
            with pytest.raises(NodefallError) as caught:
                hook.deliver(event(EventKind.HALTED))
        assert len(server.received) == 1
        assert caught.value.message == f"{server.url}: it answers {status} no such \\x1bhook"

    def test_tries_are_bounded(self) -> None:
        with web_server(Answer(503, b"")) as server, pytest.raises(NodefallError, match="it answers 503"):
            Webhook(server.url, KEY, quick(4), lambda: NOW).deliver(event(EventKind.HALTED))
        assert len(server.received) == 4

    def test_after_the_end_nothing_is_repeated(self) -> None:
        requester = quick(4)
        requester.ended.set()
        with web_server(Answer(503)) as server, pytest.raises(NodefallError):
            Webhook(server.url, KEY, requester, lambda: NOW).deliver(event(EventKind.HALTED))
        assert len(server.received) == 1


def check_slack(body: Any) -> None:
    """Block Kit: text of at most 3000 characters in a section; &, < and > escaped, so that nothing is a mention.

    https://docs.slack.dev/reference/block-kit/blocks/section-block and .../formatting-message-text
    """
    assert body.keys() == {"text", "blocks"}
    assert body["text"]
    for block in body["blocks"]:
        assert block.keys() == {"type", "text"}
        assert block["type"] == "section"
        assert block["text"].keys() == {"type", "text"}
        assert block["text"]["type"] == "mrkdwn"
        assert 1 <= len(block["text"]["text"]) <= 3000
        assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", block["text"]["text"])
    assert not re.search(r"[<>]|@[\w.]|\]\(", body["text"])  # Mattermost shows only this, with mentions and links
    assert len(body["text"]) <= 4000


def check_teams(body: Any) -> None:
    """An Adaptive Card in a message: https://adaptivecards.io/explorer/ (RichTextBlock). At most 28 KB, no Markdown."""
    assert len(json.dumps(body)) < 28_000
    assert body["type"] == "message"
    (attachment,) = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    for each in card["body"]:
        assert (each.keys(), each["type"]) == ({"type", "inlines"}, "RichTextBlock")
        assert all(run["type"] == "TextRun" and run["text"] for run in each["inlines"])
    ((head,), *_) = (each["inlines"] for each in card["body"])
    assert head["color"] in ("default", "dark", "light", "accent", "good", "warning", "attention")
    for action in card.get("actions", []):
        assert action == {"type": "Action.OpenUrl", "title": "Report", "url": "https://x/?a=1&b=2"}


@pytest.mark.parametrize(("kind", "check"), [("slack", check_slack), ("teams", check_teams)])
@pytest.mark.parametrize("sent", [*EVERY, HOSTILE], ids=lambda sent: str(sent.kind))
def test_chats(kind: str, check: Callable[[Any], None], sent: DayEvent) -> None:
    with web_server(Answer(200, b"ok")) as server:
        Chat(kind, f"{server.url}/services/T0/B0/xyz", quick()).deliver(sent)
    (request,) = server.received
    assert (request.method, request.path) == ("POST", "/services/T0/B0/xyz")
    check(request.json)


def test_what_mattermost_shows_is_complete() -> None:
    """It ignores blocks."""
    sent = event(EventKind.ENTRY_ENDS, counts={"held": 3, "violated": 1}, report="https://ci.example/a/report.html")
    assert slack_message(sent)["text"].splitlines() == [
        "game day monthly on prod-a: drain is violated",
        "why: 2 of 3 &lt;pods&gt; &amp; more",
        "runs: 3 held, 1 violated",
        "took: 5m",
        "owner: platform",
        "run: drain-1f2e3d",
        "report: https://ci.example/a/report.html",
    ]


def test_a_rate_limit_is_respected() -> None:
    answers = iter([Answer(429, b"", {"Retry-After": "1"}), Answer(200, b"ok")])
    waits: list[float] = []
    requester = quick()
    requester.ended.wait = lambda seconds: bool(waits.append(seconds or 0.0))  # type: ignore[method-assign, func-returns-value, assignment, misc]
    with web_server(lambda _: next(answers)) as server:
        Chat("slack", server.url, requester).deliver(event(EventKind.HALTED))
    assert waits == [1.0]


class GrafanaStandIn:
    """Create and patch of https://grafana.com/docs/grafana/latest/developers/http_api/annotations/."""

    def __init__(self) -> None:
        self.annotations: dict[int, dict[str, Any]] = {}

    def __call__(self, request: Received) -> Answer:
        if request.headers.get("authorization") != "Bearer glsa_token":
            return Answer(401, b'{"message": "Unauthorized"}')
        assert request.headers["content-type"] == "application/json"
        body = request.json
        assert body.keys() <= {"time", "timeEnd", "tags", "text", "dashboardUID", "panelId"}
        assert all(isinstance(body[key], int) for key in ("time", "timeEnd") if key in body)
        assert all(isinstance(tag, str) for tag in body["tags"])
        if (request.method, request.path) == ("POST", "/grafana/api/annotations"):
            assert "time" in body
            number = len(self.annotations) + 1
            self.annotations[number] = body
            return Answer(200, json.dumps({"message": "Annotation added", "id": number}).encode())
        found = re.fullmatch(r"/grafana/api/annotations/(\d+)", request.path)
        if request.method != "PATCH" or not found or int(found[1]) not in self.annotations:
            return Answer(404, b'{"message": "not found"}')
        self.annotations[int(found[1])] |= body
        return Answer(200, b'{"message":"Annotation patched"}')


class TestGrafana:
    def test_an_entry_is_a_region(self) -> None:
        grafana = GrafanaStandIn()
        with web_server(grafana) as server:
            receiver = Grafana(f"{server.url}/grafana/", "glsa_token", ["nodefall"], quick())
            for sent in EVERY:
                receiver.deliver(sent)
        assert server.paths() == ["POST /grafana/api/annotations", "PATCH /grafana/api/annotations/1"]
        (made,) = grafana.annotations.values()
        assert (made["time"], made["timeEnd"]) == (round(NOW * 1000), round((NOW + 300) * 1000))
        assert made["tags"] == ["nodefall", "monthly", "drain", "prod-a", "violated"]
        assert made["text"].splitlines()[0] == "game day monthly on prod-a: drain is violated"

    def test_after_a_restart_the_region_is_made_at_once(self) -> None:
        grafana = GrafanaStandIn()
        with web_server(grafana) as server:
            Grafana(f"{server.url}/grafana", "glsa_token", [], quick()).deliver(event(EventKind.ENTRY_ENDS))
        (made,) = grafana.annotations.values()
        assert made["timeEnd"] - made["time"] == 300_000

    def test_a_wrong_token(self) -> None:
        with web_server(GrafanaStandIn()) as server, pytest.raises(NodefallError, match="401") as caught:
            Grafana(f"{server.url}/grafana", "wrong-token", [], quick()).deliver(event(EventKind.ENTRY_BEGINS))
        assert "wrong-token" not in caught.value.message

    @pytest.mark.parametrize("body", [b"[]", b'{"id": "x"}', b"{}"])
    def test_an_answer_without_an_id(self, body: bytes) -> None:
        with web_server(Answer(200, body)) as server:
            receiver = Grafana(server.url, "t", [], quick())
            receiver.deliver(event(EventKind.ENTRY_BEGINS))
            receiver.deliver(event(EventKind.ENTRY_ENDS))
        assert server.paths() == ["POST /api/annotations"] * 2

    def test_nonsense(self) -> None:
        with (
            web_server(Answer(200, b"<html>")) as server,
            pytest.raises(NodefallError, match="response is not JSON"),
        ):
            Grafana(server.url, "t", [], quick()).deliver(event(EventKind.ENTRY_BEGINS))


class AlertmanagerStandIn:
    """Silences of https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml."""

    def __init__(self) -> None:
        self.silences: dict[str, dict[str, Any]] = {}

    def __call__(self, request: Received) -> Answer:
        if (request.method, request.path) == ("GET", "/api/v2/silences"):
            return Answer(200, json.dumps(list(self.silences.values())).encode())
        if (request.method, request.path) == ("POST", "/api/v2/silences"):
            return self._post(request.json)
        found = re.fullmatch(r"/api/v2/silence/([a-z0-9-]+)", request.path)
        if request.method == "DELETE" and found and found[1] in self.silences:
            self.silences[found[1]]["status"] = {"state": "expired"}
            return Answer(200, b"")
        return Answer(404, b"{}")

    def _post(self, body: dict[str, Any]) -> Answer:
        assert body.keys() - {"id"} == {"matchers", "startsAt", "endsAt", "createdBy", "comment"}
        assert body["matchers"]
        for matcher in body["matchers"]:
            assert {key: type(value) for key, value in matcher.items()} == {
                "name": str,
                "value": str,
                "isRegex": bool,
                "isEqual": bool,
            }
        assert datetime.fromisoformat(body["startsAt"]) < datetime.fromisoformat(body["endsAt"])
        identifier = body.get("id") or f"s-{len(self.silences) + 1}"
        self.silences[identifier] = {**body, "id": identifier, "status": {"state": "active"}}
        return Answer(200, json.dumps({"silenceID": identifier}).encode())

    def states(self) -> list[str]:
        return [each["status"]["state"] for each in self.silences.values()]


class TestAlertmanager:
    @pytest.mark.parametrize("end", [EventKind.DAY_ENDS, EventKind.HALTED])
    def test_a_day_is_silent_until_its_end_or_a_halt(self, end: EventKind) -> None:
        standin = AlertmanagerStandIn()
        standin.silences["other"] = {"id": "other", "comment": "not ours", "status": {"state": "active"}}
        with web_server(standin) as server:
            receiver = Alertmanager(server.url, {"severity": "warning"}, "", quick(), lambda: NOW)
            receiver.deliver(event(EventKind.DAY_BEGINS))
            receiver.deliver(event(EventKind.ENTRY_ENDS))
            assert standin.states() == ["active", "active"]
            receiver.deliver(event(end))
        assert standin.states() == ["active", "expired"]
        made = standin.silences["s-2"]
        assert made["comment"] == "nodefall game day monthly, 2026-11-03 on prod-a"
        assert datetime.fromisoformat(made["startsAt"]).timestamp() == NOW
        assert datetime.fromisoformat(made["endsAt"]).timestamp() == NOW + 7200 + 600

    def test_a_resumed_day_extends_its_silence(self) -> None:
        standin = AlertmanagerStandIn()
        with web_server(standin) as server:
            for _ in range(2):  # a new process has forgotten the first
                Alertmanager(server.url, {"a": "b"}, "", quick(), lambda: NOW).deliver(event(EventKind.DAY_BEGINS))
        assert standin.states() == ["active"]

    @pytest.mark.parametrize(
        ("until", "seconds"), [(None, 4 * 3600), (NOW - 5, 600), (NOW + 1e9, 24 * 3600), (NOW + 60, 660)]
    )
    def test_no_silence_is_for_ever(self, until: float | None, seconds: float) -> None:
        standin = AlertmanagerStandIn()
        with web_server(standin) as server:
            receiver = Alertmanager(server.url, {"a": "b"}, "", quick(), lambda: NOW + 50)
            receiver.deliver(event(EventKind.DAY_BEGINS, until=until))
        (made,) = standin.silences.values()
        assert datetime.fromisoformat(made["endsAt"]).timestamp() == NOW + 50 + seconds

    @pytest.mark.parametrize("body", [b"{}", b"[1, {}]", b'[{"comment": null, "status": 7}]'])
    def test_answers_without_a_silence_of_ours(self, body: bytes) -> None:
        with web_server(Answer(200, body)) as server:
            Alertmanager(server.url, {"a": "b"}, "", quick(), lambda: NOW).deliver(event(EventKind.DAY_ENDS))
        assert server.paths() == ["GET /api/v2/silences"]

    def test_nonsense(self) -> None:
        with (
            web_server(Answer(200, b"<html>")) as server,
            pytest.raises(NodefallError, match="response is not JSON"),
        ):
            Alertmanager(server.url, {"a": "b"}, "", quick(), lambda: NOW).deliver(event(EventKind.DAY_ENDS))


class TestMetrics:
    def test_a_group_for_each_entry_and_for_the_day(self) -> None:
        with web_server(Answer(200, b"")) as server:
            receiver = Pushgateway(server.url, "tok", quick())
            for sent in EVERY:
                receiver.deliver(sent)
        bodies: dict[str, bytes] = {}
        for path, received in zip(server.paths(), server.received, strict=True):
            bodies[path] = received.body  # the last one counts
            assert received.headers["authorization"] == "Bearer tok"
        entry, day = sorted(bodies, reverse=True)
        assert entry == "PUT /metrics/job/nodefall/gameday/monthly/cluster/prod-a/entry/drain"
        assert day == "PUT /metrics/job/nodefall/gameday/monthly/cluster/prod-a"
        assert b'nodefall_run_verdict{verdict="violated"} 1.0\n' in bodies[entry]

    @pytest.mark.parametrize(
        ("kind", "status"),
        [
            (EventKind.DAY_BEGINS, "running"),
            (EventKind.HALTED, "halted"),
            (EventKind.DAY_ENDS, "finished"),
        ],
    )
    def test_every_count_and_status_of_a_day_is_there(self, kind: EventKind, status: str) -> None:
        found = {
            (metric.name.removeprefix("nodefall_gameday_"), *sample.labels.values()): sample.value
            for metric in day_metrics(event(kind, at=NOW, counts={"held": 3, "skipped": 2}))
            for sample in metric.samples
        }
        words = ("held", "violated", "inconclusive", "interrupted", "pending", "running", "skipped")
        assert {key: value for key, value in found.items() if key[0] == "runs"} == {
            ("runs", word): {"held": 3, "skipped": 2}.get(word, 0) for word in words
        }
        statuses = {word: found["status", word] for word in ("running", "halted", "finished")}
        assert statuses == dict.fromkeys(statuses, 0.0) | {status: 1.0}
        assert found[("timestamp_seconds",)] == NOW
        assert (("end_timestamp_seconds",) in found) is (kind is EventKind.DAY_ENDS), "of the last day, not of a former"

    def test_a_skipped_entry_has_its_state_and_sends_no_message(self) -> None:
        skipped = event(EventKind.ENTRY_SKIPPED, entry="drain", metrics=entry_metrics("skipped", NOW, NOW, 0))
        assert skipped.occasions == frozenset()
        assert day_metrics(skipped) == skipped.metrics
        assert entry_metrics("pending", NOW, NOW, 1)[0] == entry_metrics("interrupted", NOW, NOW, 1)[0]

    def test_files_for_the_node_exporter(self, tmp_path: Path) -> None:
        receiver = TextfileCollector(tmp_path)
        for sent in [*EVERY, event(EventKind.ENTRY_ENDS)]:
            receiver.deliver(sent)
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == ["nodefall_monthly_prod-a.prom", "nodefall_monthly_prod-a_drain.prom"], "no other file is left"
        path = tmp_path / names[1]
        assert path.stat().st_mode & 0o777 == 0o644
        assert 'verdict{cluster="prod-a",entry="drain",gameday="monthly",verdict="held"} 0.0\n' in path.read_text()

    def test_a_directory_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(NodefallError, match="cannot be written: No such file"):
            TextfileCollector(tmp_path / "gone").deliver(event(EventKind.DAY_ENDS))
