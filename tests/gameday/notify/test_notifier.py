"""The notifier: no receiver keeps a run waiting, and what was not delivered is known."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from chaos.app.day.events import notifier_of
from chaos.core.errors import NodefallError
from chaos.gameday.document import Receiver
from chaos.gameday.events import DayEvent, EventKind, NoNotifier, Notifier
from chaos.gameday.notify.delivery import QueueNotifier, Subscription
from tests.kit.day_events import NOW, event
from tests.kit.processes import until
from tests.kit.web_server import Answer, WebServer, web_server

WAIT = 20.0  # wall seconds until a test gives up


class Gate:
    """A receiver that takes nothing before it is opened."""

    def __init__(self) -> None:
        self.opened, self.entered = threading.Event(), threading.Event()
        self.got: list[DayEvent] = []

    def deliver(self, sent: DayEvent) -> None:
        self.entered.set()
        self.opened.wait(WAIT)
        self.got.append(sent)


class Broken:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def deliver(self, sent: DayEvent) -> None:
        raise self.error


def days(count: int) -> list[DayEvent]:
    return [event(EventKind.DAY_BEGINS, at=NOW + n) for n in range(count)]


def test_a_receiver_that_hangs_delays_no_other() -> None:
    stuck, well, notes = Gate(), Gate(), list[str]()
    well.opened.set()
    subscriptions = [Subscription("stuck", stuck), Subscription("well", well)]
    notifier = QueueNotifier(subscriptions, notes.append, threading.Event(), capacity=10)
    sent = days(5)
    for each in sent:
        notifier.send(each)
    until(lambda: well.got == sent)
    notifier.close(0.1)
    assert [(each.receiver, each.at) for each in notifier.undelivered] == [("stuck", each.at) for each in sent]
    assert notes == ["notification to stuck failed: not delivered before the end of the process"], "once"
    stuck.opened.set()


def test_a_full_queue_loses_events_but_not_silently() -> None:
    stuck, notes = Gate(), list[str]()
    notifier = QueueNotifier([Subscription("stuck", stuck)], notes.append, threading.Event(), capacity=2)
    first, *rest = days(5)
    notifier.send(first)
    assert stuck.entered.wait(WAIT)
    for each in rest:
        notifier.send(each)
    assert [each.at for each in notifier.undelivered] == [NOW + 3, NOW + 4]
    assert notes == ["notification to stuck failed: too many events wait for this receiver"]
    stuck.opened.set()
    notifier.close(WAIT)
    assert stuck.got == [first, *rest[:2]]
    assert "notify stuck" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(NodefallError("host: no"), "host: no"), (ZeroDivisionError(), "unexpected ZeroDivisionError")],
)
def test_errors_and_bugs_are_recorded(error: Exception, reason: str) -> None:
    notes: list[str] = []
    notifier = QueueNotifier([Subscription("broken", Broken(error))], notes.append, threading.Event())
    for each in days(3):
        notifier.send(each)
    notifier.close(WAIT)
    assert [reason in each.reason for each in notifier.undelivered] == [True] * 3
    assert len(notes) == 1


ON: list[tuple[list[str], list[EventKind]]] = [
    (["start"], [EventKind.DAY_BEGINS]),
    (["entry"], [EventKind.ENTRY_BEGINS, EventKind.ENTRY_ENDS]),
    (["violated"], [EventKind.ENTRY_ENDS]),
    (["halted", "end"], [EventKind.DAY_ENDS, EventKind.HALTED]),
]


def receivers(*documents: dict[str, Any]) -> list[Receiver]:
    adapter: TypeAdapter[Receiver] = TypeAdapter(Receiver)
    return [adapter.validate_python(document) for document in documents]


@contextmanager
def notifying(notes: list[str], *documents: dict[str, Any]) -> Iterator[Notifier]:
    with notifier_of(receivers(*documents), Path("."), notes.append, pauses=()) as notifier:
        yield notifier


@pytest.mark.parametrize(("on", "kinds"), ON, ids=str)
def test_a_receiver_gets_what_it_wants(on: list[str], kinds: list[EventKind]) -> None:
    with web_server() as server, notifying([], {"kind": "webhook", "url": server.url, "on": on}) as notifier:
        for kind in EventKind:
            notifier.send(event(kind))
    assert [request.json["event"] for request in server.received] == kinds


def test_receivers_of_one_kind_have_different_names() -> None:
    """Each is printed once when it fails, and stored, although both are named slack."""
    notes: list[str] = []
    slack = {"kind": "slack", "url": {"env": "NO_SUCH_VARIABLE"}}
    with notifying(notes, slack, slack) as notifier:
        notifier.send(event(EventKind.HALTED))
    reason = "environment variable NO_SUCH_VARIABLE is not set or empty"
    assert sorted(notes) == [f"notification to slack (2) failed: {reason}", f"notification to slack failed: {reason}"]
    assert {each.receiver for each in notifier.undelivered} == {"slack", "slack (2)"}


@pytest.mark.parametrize(
    "keys",
    [
        {"kind": "webhook"},
        {"kind": "grafana", "token": {"env": "TOKEN"}},
        {"kind": "alertmanager", "silence": {"a": "b"}},
        {"kind": "metrics"},
    ],
    ids=lambda keys: str(keys["kind"]),
)
def test_names_of_receivers_have_no_query(keys: dict[str, Any]) -> None:
    """They are printed, and stored with the day; the query of a URL may have a key in it."""
    where = "pushgateway" if keys["kind"] == "metrics" else "url"
    (receiver,) = receivers({**keys, where: "https://example.com/x?key=hidden"})
    assert str(receiver) == f"{keys['kind']} https://example.com/x"


def test_a_run_that_held_is_no_violation() -> None:
    with web_server() as server, notifying([], {"kind": "webhook", "url": server.url}) as notifier:
        notifier.send(event(EventKind.ENTRY_ENDS, verdict="held"))
        notifier.send(event(EventKind.ENTRY_ENDS))
    assert [request.json["verdict"] for request in server.received] == ["violated"]


def test_without_receivers_there_is_nothing_to_do() -> None:
    with notifying([]) as notifier:
        assert isinstance(notifier, NoNotifier)
        notifier.send(event(EventKind.DAY_BEGINS))
    assert notifier.undelivered == ()


def test_no_message_has_a_secret(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the URL of a chat, nor a token or key, wherever a delivery fails."""
    secrets = {"CHAT": "/services/T0123/B4567/s3cret-path", "TOKEN": "glsa_s3cret_token", "KEY": "s3cret-key-of-hook"}
    notes: list[str] = []

    def answer(_: Any) -> Answer:
        return Answer(400, " ".join(secrets.values()).encode())

    with web_server(answer) as server:
        monkeypatch.setenv("CHAT", server.url + secrets["CHAT"])
        monkeypatch.setenv("GONE", "http://127.0.0.1:1" + secrets["CHAT"])
        monkeypatch.setenv("TOKEN", secrets["TOKEN"])
        monkeypatch.setenv("KEY", secrets["KEY"])
        documents: list[dict[str, Any]] = [
            {"kind": "slack", "url": {"env": "CHAT"}},
            {"kind": "teams", "url": {"env": "GONE"}},
            {"kind": "webhook", "url": server.url, "key": {"env": "KEY"}},
            {"kind": "grafana", "url": server.url, "token": {"env": "TOKEN"}},
            {"kind": "alertmanager", "url": server.url, "silence": {"a": "b"}, "token": {"env": "TOKEN"}},
            {"kind": "metrics", "pushgateway": server.url, "token": {"env": "TOKEN"}},
        ]
        with notifying(notes, *documents) as notifier:
            for kind in EventKind:
                notifier.send(event(kind))
    assert {each.receiver.split()[0] for each in notifier.undelivered} == {each["kind"] for each in documents}
    written = " ".join([*notes, caplog.text, *(each.reason for each in notifier.undelivered)])
    assert not [secret for secret in secrets.values() if secret in written]
    assert len(notes) == len(documents)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "environment variable CHAT is not set or empty"),
        ("hooks.slack.com/x", "its URL is not one of http or https"),
        ("file:///etc/passwd", "its URL is not one of http or https"),
        ("https:///no-host", "its URL is not one of http or https"),
    ],
)
def test_a_chat_whose_url_is_missing_or_no_url(monkeypatch: pytest.MonkeyPatch, value: str | None, reason: str) -> None:
    notes: list[str] = []
    monkeypatch.setenv("CHAT", value or "")
    with notifying(notes, {"kind": "slack", "url": {"env": "CHAT"}}) as notifier:
        notifier.send(event(EventKind.HALTED))
    assert notes == [f"notification to slack failed: {reason}"]


def test_a_server_that_hangs_ends_with_the_day() -> None:
    notes: list[str] = []
    with web_server(Answer(hang=True)) as server:
        _send_and_close(server, notes)
    assert notes == [f"notification to webhook {server.url} failed: not delivered before the end of the process"]


def _send_and_close(server: WebServer, notes: list[str]) -> None:
    (receiver,) = receivers({"kind": "webhook", "url": server.url})
    manager = notifier_of([receiver], Path("."), notes.append)
    notifier = manager.__enter__()
    notifier.send(event(EventKind.HALTED))
    assert isinstance(notifier, QueueNotifier)
    notifier.close(0.3)
