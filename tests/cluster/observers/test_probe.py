"""Probes: what counts against an endpoint, and what is a blind window."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from chaos.cluster.observers.cluster import ApiHealth
from chaos.cluster.observers.probe import (
    ProbeFailed,
    ProbeFunc,
    ProbeNotSent,
    ProbeObserver,
    http_probe,
    service_probe,
    tcp_probe,
)
from chaos.core.probes import Probe, ServiceReference
from chaos.core.recording import ProbeResult
from tests.kit.misbehaving import KubeServer, Lines, ManualClock, plain_api, serving
from tests.kit.processes import free_port
from tests.kit.tls_authority import Authority
from tests.kit.turn_clock import TurnClock

PROXY = "/api/v1/namespaces/demo/services/web:80/proxy/"


@pytest.mark.parametrize("status", [200, 302, 404, 503])
def test_the_status_of_an_http_endpoint(status: int) -> None:
    server = KubeServer()
    server.answers["/x"] = (status, b"")
    with serving(server) as port:
        ask = http_probe(f"http://127.0.0.1:{port}/x?y=1", 5.0)
        assert (ask(), ask()) == (status, status)
    assert server.requests == [("/x", {"y": "1"})] * 2


def test_a_closed_port_counts_against_the_endpoint() -> None:
    port = free_port()
    for ask in (http_probe(f"http://127.0.0.1:{port}/", 5.0), tcp_probe(f"127.0.0.1:{port}", 5.0)):
        with pytest.raises(ProbeFailed, match="connection refused"):
            ask()


def test_silence_counts_against_the_endpoint() -> None:
    server = KubeServer()
    server.flowing.clear()
    with serving(server) as port, pytest.raises(ProbeFailed, match="timed out waiting for a response"):
        http_probe(f"http://127.0.0.1:{port}/", 0.2)()


def test_a_connection_that_is_cut() -> None:
    server = KubeServer()
    server.closing = True
    with serving(server) as port:
        with pytest.raises(ProbeFailed, match="cut"):
            http_probe(f"http://127.0.0.1:{port}/", 5.0)()
        assert tcp_probe(f"127.0.0.1:{port}", 5.0)() is None, "connecting is all that is asked"


def test_an_untrusted_certificate_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, server = Authority(tmp_path, "shop"), KubeServer()
    server.answers["/"] = (200, b"")
    with serving(server, authority.server()) as port:
        url = f"https://127.0.0.1:{port}/?token=secret"
        with pytest.raises(ProbeFailed, match="certificate") as caught:
            http_probe(url, 5.0)()
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert http_probe(url, 5.0)() == 200
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), False),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), True),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (OSError(errno.EHOSTUNREACH, "No route to host"), False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), False),
        (TimeoutError(errno.ETIMEDOUT, "timed out"), False),
    ],
)
@pytest.mark.parametrize(
    "make", [lambda: http_probe("http://shop.example/", 1.0), lambda: tcp_probe("shop.example:80", 1.0)]
)
def test_failures_of_the_endpoint_and_of_this_side(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], ProbeFunc], error: OSError, ours: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ProbeNotSent if ours else ProbeFailed):
        make()()


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b"ok", 200),
        (404, b"no page", 404),
        (403, b"<html>the app's own</html>", 403),
        (503, b'{"kind":"Status","message":"no endpoints available for service \\"web\\""}', ProbeFailed),
        (404, b'{"kind":"Status","message":"services \\"web\\" not found"}', ProbeFailed),
        (403, b'{"kind":"Status","message":"cannot get resource \\"services/proxy\\""}', ProbeNotSent),
        (429, b'{"kind":"Status","message":"too many requests"}', ProbeNotSent),
    ],
)
def test_a_service_through_the_api_server(
    tmp_path: Path, status: int, body: bytes, outcome: int | type[Exception]
) -> None:
    server = KubeServer()
    server.answers[PROXY] = (status, body)
    with serving(server) as port:
        api = plain_api(tmp_path, port)
        ask = service_probe(ServiceReference(name="web"), api, ApiHealth(api, ManualClock()), "demo", 5.0)
        if isinstance(outcome, int):
            assert ask() == outcome
        else:
            with pytest.raises(outcome):
                ask()


def test_without_an_api_server_there_is_no_finding_about_the_service(tmp_path: Path) -> None:
    api = plain_api(tmp_path, free_port())
    with pytest.raises(ProbeNotSent, match="connection refused"):
        service_probe(ServiceReference(name="web"), api, ApiHealth(api, ManualClock()), "demo", 5.0)()


def test_what_is_recorded() -> None:
    """A failure, a blind time, a slow answer and a good one, each a second after the other."""
    clock, lines = TurnClock(), Lines()
    script: list[Exception | int] = [
        ProbeFailed("refused"),
        ProbeNotSent("no DNS"),
        ProbeNotSent("no DNS"),
        200,
        200,
        503,
    ]
    turns: list[float] = []

    def ask() -> int:
        turns.append(clock.now())
        answer = script[len(turns) - 1] if len(turns) <= len(script) else 200
        if len(turns) == 4:
            clock.advance(3.0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    probe = ProbeObserver(Probe(name="shop", tcp="x:1"), ask, clock)
    probe.start(lines)
    clock.until(lambda: len(turns) > 6)
    probe.stop()
    clock.close()
    answers = [msgspec.json.decode(line.object, type=ProbeResult) for line in lines.of("probe")[:4]]
    assert [(a.ok, a.status) for a in answers] == [(False, None), (False, 200), (True, 200), (False, 503)]
    assert [a.error for a in answers] == ["refused", "it took 3.0 s", "", "HTTP 503"]
    assert {line.type for line in lines.of("probe")} == {"shop"}
    windows = lines.windows()
    assert [(start, reason) for start, _, reason in windows] == [(turns[1], "no DNS")] * 2
    assert windows[1][1] == turns[3] + 3.0
    assert lines.of("blind")[0].type == "probe@shop"


@pytest.mark.parametrize("failure", [None, ProbeFailed("no answer in time")], ids=["answered", "timed out"])
def test_a_probe_during_which_this_process_was_stopped_says_nothing(failure: ProbeFailed | None) -> None:
    """As by SIGSTOP, or a laptop that was closed, for 30 s in the second probe."""
    clock, lines = TurnClock(), Lines()
    began: list[float] = []

    def ask() -> int:
        began.append(clock.now())
        if len(began) == 2:
            clock.advance(30.0)
            if failure:
                raise failure
        return 200

    probe = ProbeObserver(Probe(name="shop", tcp="x:1"), ask, clock)
    probe.start(lines)
    clock.until(lambda: len(began) > 3)
    probe.stop()
    clock.close()
    assert all(msgspec.json.decode(line.object, type=ProbeResult).ok for line in lines.of("probe"))
    *_, (start, end, reason) = lines.windows()
    assert (start, end) == (began[1], began[2])
    assert reason == "a probe took 30.0 s, longer than its timeout of 2 s: nodefall stalled"
