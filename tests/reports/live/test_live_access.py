"""Who is admitted to the live page: the rules as tables, and the server that keeps them."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.errors import UsageError
from chaos.reports.live.access import (
    Access,
    Address,
    Claim,
    is_known_host,
    is_loopback,
    is_own_origin,
    listen,
    parse_address,
    shown_host,
)
from chaos.reports.live.connections import MAX_STRANGERS, STRANGER_SECONDS
from chaos.reports.live.feed import LiveFeed
from chaos.reports.live.server import LiveServer

NAMES = frozenset({"bastion.example"})
TOKEN = "t" * 43


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8080", True),
        ("127.0.0.1", True),
        ("[::1]:8080", True),
        ("10.1.2.3:80", True),
        ("localhost:9", True),
        ("LOCALHOST", True),
        ("bastion.example:8080", True),
        ("Bastion.Example", True),
        ("attacker.example:8080", False),
        ("127.0.0.1.attacker.example", False),
        ("localhost.attacker.example", False),
        ("user@127.0.0.1", False),
        ("127.0.0.1/evil", False),
        ("127.0.0.1:port", False),
        ("127.0.0.1:99999", False),
        ("[::1", False),
        ("::1", False),
        ("", False),
        ("0x7f.1", False),
    ],
)
def test_known_hosts(host: str, known: bool) -> None:
    assert is_known_host(host, NAMES) is known


@pytest.mark.parametrize(
    ("origin", "own"),
    [
        ("http://127.0.0.1:8080", True),
        ("https://127.0.0.1:8080", True),
        ("HTTP://127.0.0.1:8080", True),
        ("http://127.0.0.1:8081", False),
        ("http://127.0.0.1", False),
        ("http://attacker.example:8080", False),
        ("http://127.0.0.1:8080/path", False),
        ("http://user@127.0.0.1:8080", False),
        ("file://127.0.0.1:8080", False),
        ("http://[", False),
        ("null", False),
        ("", False),
        (None, False),
    ],
)
def test_origins(origin: str | None, own: bool) -> None:
    assert is_own_origin(origin, "127.0.0.1:8080") is own


@pytest.mark.parametrize(
    ("method", "host", "origin", "token", "status"),
    [
        ("GET", "127.0.0.1:1", None, TOKEN, None),
        ("POST", "127.0.0.1:1", "http://127.0.0.1:1", TOKEN, None),
        ("GET", "127.0.0.1:1", None, "", 401),
        ("GET", "127.0.0.1:1", None, TOKEN[:-1], 401),
        ("GET", "127.0.0.1:1", None, TOKEN + "t", 401),
        ("GET", "127.0.0.1:1", None, "\udcff", 401),
        ("GET", "attacker.example", None, TOKEN, 421),
        ("POST", "127.0.0.1:1", None, TOKEN, 403),
        ("POST", "127.0.0.1:1", "http://attacker.example", TOKEN, 403),
        ("POST", "127.0.0.1:1", "http://127.0.0.1:1", "", 401),
        ("DELETE", "127.0.0.1:1", None, TOKEN, 403),
    ],
)
def test_denials(method: str, host: str, origin: str | None, token: str, status: int | None) -> None:
    denial = Access(TOKEN, NAMES).denial(Claim(method, host, origin, token))
    assert (denial and denial.status) == status


@given(st.text(max_size=40))
@settings(max_examples=50, deadline=None)
def test_any_host_and_origin_have_an_answer(text: str) -> None:
    assert is_known_host(text, NAMES) in (True, False)
    assert is_own_origin(text, "127.0.0.1:1") in (True, False)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", Address("127.0.0.1", 8080)),
        ("0", Address("127.0.0.1", 0)),
        ("0.0.0.0:8080", Address("0.0.0.0", 8080)),
        ("[::1]:80", Address("::1", 80)),
        ("bastion.example:80", Address("bastion.example", 80)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "my.yaml", "experiments/x.yaml", "host:", ":80", "80:host", "70000", "a b:1", "-1"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address: write PORT or HOST:PORT"):
        parse_address(text)


def test_a_port_in_use_is_an_error_that_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot serve on 127\.0\.0\.1:{port}: the port is in use"):
            LiveServer(Address("127.0.0.1", port), LiveFeed("e", "c"), "t")


@pytest.mark.parametrize(
    ("host", "words"),
    [("192.0.2.1", "does not have the address"), ("nodefall.invalid", "the host name is unknown")],
)
def test_an_address_of_others(host: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        listen(Address(host, 0))


@pytest.mark.parametrize(("host", "private"), [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)])
def test_whether_only_this_machine_reaches_it(host: str, private: bool) -> None:
    with listen(Address(host, 0)) as bound:
        assert is_loopback(bound) is private
        assert shown_host(Address(host, 0), bound) == (host if private else socket.gethostname())


# The server itself.


@pytest.fixture(scope="module")
def stops() -> list[str]:
    return []


@pytest.fixture(scope="module")
def server(stops: list[str]) -> Iterator[LiveServer]:
    feed = LiveFeed("experiment", "lab")
    feed.begin({}, lambda: stops.append("stop"))
    feed.take(1)
    with LiveServer(Address("127.0.0.1", 0), feed, "A <b>title</b>") as started:
        yield started


class Answer:
    def __init__(self, server: LiveServer, method: str, path: str, **headers: str) -> None:
        host, _, port = server.url.removeprefix("http://").partition("/")[0].partition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        self.status, self.headers = response.status, response.headers
        self.is_stream = self.headers.get_content_type() == "text/event-stream"
        self.text = response.readline().decode() if self.is_stream else response.read().decode()
        connection.close()


def token(server: LiveServer) -> str:
    return server.url.rstrip("/").rpartition("/")[2]


def origin(server: LiveServer) -> str:
    return server.url.rstrip("/").rpartition("/")[0]


def test_the_page_has_a_strict_policy_and_keeps_its_token(server: LiveServer) -> None:
    """A cookie would go to every server on another port of this machine, also to those of other users."""
    found = Answer(server, "GET", f"/{token(server)}/")
    assert found.status == 200
    policy = found.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert len(re.findall("'sha256-", policy)) == 2
    assert token(server) not in found.text
    assert "A &lt;b&gt;title&lt;/b&gt;" in found.text
    assert "Set-Cookie" not in found.headers
    assert found.headers["Cache-Control"] == "no-store"
    assert found.headers["Referrer-Policy"] == "no-referrer"
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", found.text), "nothing is loaded"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 401),
        ("GET", "//", 401),
        ("GET", "/?token=RIGHT", 401),
        ("GET", "/wrong/", 401),
        ("GET", "/RIGHT", 401),
        ("GET", "/wrong/RIGHT/events", 401),
        ("GET", "/events", 401),
        ("GET", "/events?token=RIGHT", 401),
        ("POST", "/stop", 401),
        ("POST", "/stop?token=RIGHT", 401),
        ("POST", "/?token=RIGHT", 401),
        ("GET", "/report.html", 401),
        ("OPTIONS", "/stop", 401),
    ],
)
def test_nothing_without_the_token(server: LiveServer, stops: list[str], method: str, path: str, status: int) -> None:
    found = Answer(server, method, path.replace("RIGHT", token(server)), Origin=origin(server))
    assert (found.status, "canvas" in found.text) == (status, False)
    assert "Set-Cookie" not in found.headers
    assert stops == []


@pytest.mark.parametrize("place", ["path", "header"])
def test_a_token_in_the_path_or_in_a_header_is_enough_to_read(server: LiveServer, place: str) -> None:
    path = f"/{token(server)}/events" if place == "path" else "/events"
    headers = {} if place == "path" else {"Authorization": f"Bearer {token(server)}"}
    found = Answer(server, "GET", path, **headers)
    assert (found.status, found.is_stream, found.text) == (200, True, "event: state\n")


@pytest.mark.parametrize(
    ("path", "method", "headers", "status"),
    [
        ("/", "GET", {"Host": "attacker.example"}, 421),
        ("/stop", "POST", {}, 403),
        ("/stop", "POST", {"Origin": "http://attacker.example"}, 403),
        ("/stop", "POST", {"Origin": "null"}, 403),
        ("/stop", "GET", {}, 405),
        ("/nothing", "GET", {}, 404),
    ],
)
def test_denied_with_the_token(
    server: LiveServer, stops: list[str], path: str, method: str, headers: dict[str, str], status: int
) -> None:
    found = Answer(server, method, path, Authorization=f"Bearer {token(server)}", **headers)
    assert found.status == status
    assert stops == []


def test_a_cookie_admits_no_one(server: LiveServer) -> None:
    port = origin(server).rpartition(":")[2]
    assert Answer(server, "GET", "/events", Cookie=f"nodefall-{port}={token(server)}").status == 401


def test_stop_works_once(server: LiveServer, stops: list[str]) -> None:
    for _ in range(2):
        found = Answer(server, "POST", "/stop", Authorization=f"Bearer {token(server)}", Origin=origin(server))
        assert found.status == 202
    assert stops == ["stop"]


def test_a_run_that_has_not_begun_cannot_be_stopped() -> None:
    with LiveServer(Address("127.0.0.1", 0), LiveFeed("e", "c"), "t") as early:
        found = Answer(early, "POST", "/stop", Authorization=f"Bearer {token(early)}", Origin=origin(early))
        assert (found.status, found.text) == (409, "the run cannot be stopped now\n")


def half_open(server: LiveServer, sent: bytes = b"GET / HTTP/1.1\r\nHost: x\r\n") -> socket.socket:
    """A connection of a stranger whose request never ends."""
    host, _, port = origin(server).removeprefix("http://").partition(":")
    client = socket.create_connection((host, int(port)), 10)
    client.sendall(sent)
    return client


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_strangers_never_keep_out_who_has_the_token(server: LiveServer, sent: bytes) -> None:
    """They open more connections than there is room for, before every request of the page."""
    strangers: list[socket.socket] = []
    try:
        for _ in range(10):
            strangers += [half_open(server, sent) for _ in range(60)]
            assert Answer(server, "GET", f"/{token(server)}/").status == 200
    finally:
        for stranger in strangers:
            stranger.close()


def test_a_stranger_has_two_seconds(server: LiveServer) -> None:
    with half_open(server) as stranger:
        stranger.settimeout(STRANGER_SECONDS + 8)
        with suppress(ConnectionResetError):
            assert stranger.recv(100) == b"", "it is disconnected"


def test_an_open_page_stays_while_strangers_come(server: LiveServer) -> None:
    host, _, port = origin(server).removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as page:
        page.sendall(f"GET /{token(server)}/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert b"200 OK" in page.recv(1000)
        strangers = [half_open(server) for _ in range(2 * MAX_STRANGERS)]
        assert Answer(server, "GET", f"/{token(server)}/").status == 200
        page.setblocking(False)
        with suppress(BlockingIOError):
            assert page.recv(100000), "its connection is open"
        for stranger in strangers:
            stranger.close()
