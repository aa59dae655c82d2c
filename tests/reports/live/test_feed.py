"""The feed of a live page: what clients get that have seen something, nothing, or too little."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chaos.core import redaction
from chaos.core.timeline import Entry
from chaos.core.verdict import Status, Verdict
from chaos.engine.progress import NullProgress
from chaos.reports.live import feed as feeds
from chaos.reports.live import server as servers
from chaos.reports.live.access import Address
from chaos.reports.live.feed import RETAINED, LiveFeed
from chaos.reports.live.server import LiveServer
from chaos.reports.run.page.page_data import unpack
from tests.kit.live_client import LiveClient
from tests.kit.small_timelines import node, pod


def made(count: int, first: int = 0) -> Iterator[Entry]:
    for seq in range(first, first + count):
        thing = node("True") if seq == 0 else pod("Running", name=f"p{seq}", uid=f"u{seq}")
        yield Entry(seq, 100.0 + seq, "pods" if seq else "nodes", "ADDED", thing)


def publish(feed: LiveFeed, entries: Iterator[Entry]) -> None:
    for entry in entries:
        feed.entry(entry)
    assert not feed.take(10)
    assert feed.publish()


def shown(events: list[tuple[str, str]], client: LiveClient | None = None) -> dict[str, Any]:
    client = client or LiveClient()
    for name, data in events:
        client.take(json.dumps(unpack(data)) if name == "whole" else data)
    return client.shown()


def test_a_client_gets_everything_and_then_what_has_changed() -> None:
    feed, client = LiveFeed("e", "c"), LiveClient()
    assert feed.since(0) == []
    publish(feed, made(3))
    first = feed.since(0)
    assert [name for name, _ in first] == ["whole"]
    shown(first, client)
    assert feed.since(1) == []
    publish(feed, made(1, 3))
    publish(feed, made(1, 4))
    more = feed.since(1)
    assert [name for name, _ in more] == ["more", "more"]
    assert shown(more, client) == shown(feed.since(0))
    assert [lane[2] for lane in client.lanes.values()] == ["n1", "ns/p1", "ns/p2", "ns/p3", "ns/p4"]


def test_a_client_that_is_too_far_behind_gets_everything() -> None:
    feed = LiveFeed("e", "c")
    publish(feed, made(1))
    for seq in range(1, RETAINED + 2):
        publish(feed, made(1, seq))
    assert [name for name, _ in feed.since(1)] == ["whole"]
    assert [name for name, _ in feed.since(feed.version - RETAINED)] == ["more"] * RETAINED


def test_a_great_change_is_sent_as_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_BIG", 1000)
    feed = LiveFeed("e", "c")
    publish(feed, made(1))
    publish(feed, made(50, 1))
    assert [name for name, _ in feed.since(1)] == ["whole"]


def test_nothing_new_is_no_message() -> None:
    feed = LiveFeed("e", "c")
    feed.describe(phase="plan")
    feed.take(1)
    assert not feed.publish(), "nothing was observed yet"
    publish(feed, made(1))
    assert not feed.publish()
    feed.tick(200)
    feed.take(1)
    assert feed.publish()
    assert json.loads(feed.since(1)[0][1])["now"] == 100_000


def test_the_steady_state_is_shown_before_the_first_judgement() -> None:
    feed = LiveFeed("e", "c")
    feed.begin({"victim": ("n1",)}, None)
    feed.steady((Verdict("all nodes are ready", "nodes-ready", Status.PENDING, "n2 is not"),))
    publish(feed, made(2))
    found = shown(feed.since(0))
    assert [(verdict["name"], verdict["part"]) for verdict in found["verdicts"]] == [
        ("all nodes are ready", "Steady state")
    ]
    assert found["lanes"][0][5] & 1, "the node is marked as a target"


def test_progress_is_passed_on_and_shown() -> None:
    feed, seen = LiveFeed("e", "c"), list[str]()

    class Seen(NullProgress):
        def phase(self, name: str) -> None:
            seen.append(name)

        def note(self, text: str) -> None:
            seen.append(text)

    progress = feed.progress(Seen())
    progress.phase("inject")
    progress.step("off", "n1", "sent")
    feed.take(1)
    assert json.loads(feed.state()) == {
        "experiment": "e", "cluster": "c", "phase": "inject", "note": "step off on n1: sent", "stop": "",
    }  # fmt: skip
    progress.note("by\x1bye")
    feed.take(1)
    assert json.loads(feed.state())["note"] == "by\\x1bye"
    assert seen == ["inject", "by\x1bye"]


def test_no_secret_is_shown() -> None:
    redaction.register_secret("hunter2-hunter2")
    feed = LiveFeed("e", "c")
    feed.describe(note="the password hunter2-hunter2 was rejected")
    feed.steady((Verdict("v", "a", Status.PENDING, "hunter2-hunter2 is not"),))
    feed.entry(Entry(0, 100.0, "nodes", "ADDED", node("True", "hunter2-hunter2")))
    feed.take(1)
    feed.publish()
    text = feed.state() + json.dumps(unpack(feed.since(0)[0][1]))
    assert ("***" in text, "hunter2" in text) == (True, False)


def test_stop_only_where_there_is_something_to_stop() -> None:
    feed, stops = LiveFeed("e", "c"), list[str]()
    assert not feed.stop()
    feed.begin({}, lambda: stops.append("stop"))
    feed.take(1)
    assert (feed.stop(), feed.stop(), stops) == (True, True, ["stop"])
    feed.begin({}, None)
    feed.take(1)
    assert not feed.stop()


# The server's thread.


@contextmanager
def stream(server: LiveServer) -> Iterator[socket.socket]:
    """A client of the events that reads nothing by itself."""
    base, _, token = server.url.rstrip("/").rpartition("/")
    host, _, port = base.removeprefix("http://").partition(":")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.settimeout(30)
        client.connect((host, int(port)))
        request = f"GET /events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        client.sendall(request.encode())
        yield client


def read_until(client: socket.socket, words: bytes) -> bytes:
    data = b""
    while words not in data:
        block = client.recv(65536)
        assert block, data[-200:]
        data += block
    return data


def test_a_client_that_reads_nothing_delays_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "INTERVAL", 0.05)
    monkeypatch.setattr(servers, "_FAREWELL", 1.0)
    feed = LiveFeed("e", "c")
    with LiveServer(Address("127.0.0.1", 0), feed, "t") as server, stream(server) as stuck, stream(server) as reader:
        read_until(stuck, b"event: state")
        for entry in made(3000):
            feed.entry(entry)
        assert b"event: whole" in read_until(reader, b"event: whole")
        for entry in made(10, 3000):
            feed.entry(entry)
        read_until(reader, b"event: more")
        server.finish("", "It is over.")
        assert b"It is over." in read_until(reader, b"event: end\ndata: ")[-500:] + reader.recv(500)
    assert not [thread for thread in threading.enumerate() if thread.name == "live page"]


def test_a_page_that_fails_does_not_fail_the_run(caplog: pytest.LogCaptureFixture) -> None:
    feed = LiveFeed("e", "c")
    with LiveServer(Address("127.0.0.1", 0), feed, "t") as server:
        feed.entry(Entry(0, 100.0, "nodes", "ADDED", "no node"))
        server._thread.join(30)
        assert not server._thread.is_alive()
        feed.entry(Entry(1, 100.0, "nodes", "ADDED", node("True")))
        feed.tick(101.0)
        assert not feed._news, "without a server it would grow with the run"
        server.finish("<html></html>", "")
    assert "the live page has failed" in caplog.text


def test_too_many_connections_and_too_many_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.reports.live.connections.MAX_GUESTS", 3)
    monkeypatch.setattr("chaos.reports.live.server.MAX_STREAMS", 2)
    server = LiveServer(Address("127.0.0.1", 0), LiveFeed("e", "c"), "t")
    with server, stream(server) as first, stream(server) as second:
        read_until(first, b"event: state")
        read_until(second, b"event: state")
        with stream(server) as third:
            assert b" 503 " in read_until(third, b"too many pages are open")
            with stream(server) as fourth:
                assert b"too many connections are open" in read_until(fourth, b"open")
