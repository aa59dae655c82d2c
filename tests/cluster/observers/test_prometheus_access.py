"""Servers with the API of Prometheus that are not a plain Prometheus: what is sent, and what is said of them."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chaos.cluster.observers.prometheus import check_freshness, make_client
from chaos.cluster.observers.selectors import newest_of, selectors
from chaos.core.errors import BadInput, NodefallError, Refused
from chaos.core.field_types import Secret
from chaos.core.prometheus import Prometheus
from chaos.machines.local import resolve_secret
from tests.kit.recording_server import NAMES, issue
from tests.kit.tls_authority import Authority

PROMTOOL = shutil.which("promtool")
TOKEN = "prom-tok-en-secret"
QUERY = 'sum(rate(http_requests_total{code="500"}[1m]))'


@dataclass
class Stub:
    """``mode`` says how it differs; it has samples of ``known`` metrics, ``age`` seconds old."""

    mode: str = ""
    known: tuple[str, ...] = ("up", "http_requests_total")
    age: float = 5.0
    port: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    stub: Stub

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Quiet."""

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self._answer(parse_qs(urlsplit(self.path).query) | parse_qs(form))

    def do_GET(self) -> None:
        self._answer(parse_qs(urlsplit(self.path).query))

    def _answer(self, form: dict[str, list[str]]) -> None:
        stub, query = self.stub, form.get("query", [""])[0]
        stub.headers.append({key.lower(): value for key, value in self.headers.items()})
        stub.queries.append(query)
        status, body, more = self._by_mode(stub.mode) or (
            200,
            _vector(query, stub),
            {"Content-Type": "application/json"},
        )
        self.send_response(status)
        for key, value in more.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _by_mode(self, mode: str) -> tuple[int, bytes, dict[str, str]] | None:
        """The answer of a mode; None where it is that of a Prometheus."""
        has_prefix = urlsplit(self.path).path.startswith("/prometheus/")
        has_token = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        answers: dict[str, tuple[bool, int, bytes, dict[str, str]]] = {
            "tenant": (self.headers.get("X-Scope-OrgID") == "team-a", 401, b"no org id\n", {}),
            "bearer": (has_token, 401, b"", {}),
            "login": (False, 302, b"", {"Location": "https://sso.example/login?rd=prom"}),
            "html": (False, 200, b"<html><body>Please <b>sign in</b></body></html>", {"Content-Type": "text/html"}),
            "agent": (False, 422, b'{"status":"error","error":"unavailable with Prometheus Agent"}', {}),
            "prefix": (has_prefix, 404, b"404 page not found", {}),
            "moved": (has_prefix, 301, b"", {"Location": f"/prometheus{self.path}"}),
        }
        passes, *answer = answers.get(mode, (True, 0, b"", {}))
        return None if passes else tuple(answer)  # type: ignore[return-value]


def _vector(query: str, stub: Stub) -> bytes:
    """The value is the time of the newest sample where that is queries, else 1; nothing where a metric is unknown."""
    now = time.time()
    value = now - stub.age if "timestamp" in query or "push_time" in query else 1.0
    unknown = [name for name in ("up", "http_requests_total") if f"({name}" in query and name not in stub.known]
    result = [] if unknown else [{"metric": {}, "value": [now, str(value)]}]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@contextmanager
def serving(stub: Stub, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"stub": stub}))
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    stub.port = server.server_address[1]
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{stub.port}"
    finally:
        server.shutdown()
        server.server_close()


def check(url: str, **settings: Any) -> None:
    """As doctor and a run do: the query, and how old the data is. Raises NodefallError."""
    given = Prometheus.model_validate({"url": url, **settings})
    client = make_client(given, resolve_secret)
    client.query(QUERY)
    check_freshness(client, given, [QUERY])


def works_with_promtool(url: str) -> bool:
    argv = [str(PROMTOOL), "query", "instant", url, QUERY]
    return subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 0


BEARER = {"credentials": {"env": "PROM_TOKEN"}}
MODES: list[tuple[str, str, dict[str, Any], str]] = [
    # mode, path, settings, what is said
    ("", "", {}, ""),
    ("tenant", "", {}, "answers 401: no org id"),
    ("bearer", "", BEARER, ""),
    ("bearer", "", {"user": "ada", **BEARER}, "answers 401"),
    ("bearer", "", {"headers": {"Authorization": {"env": "PROM_HEADER"}}}, ""),
    ("html", "", {}, "its answer is not JSON of Prometheus: Please sign in"),
    ("agent", "", {}, "unavailable with Prometheus Agent"),
    ("prefix", "", {}, "answers 404: 404 page not found"),
    ("prefix", "/prometheus", {}, ""),
    ("prefix", "/prometheus/", {}, ""),
    ("moved", "", {}, ""),
]


@pytest.mark.parametrize(("mode", "path", "settings", "said"), MODES)
def test_each_mode_works_or_says_what_was_answered(
    mode: str, path: str, settings: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without credentials, which promtool has no option for, promtool works or fails with the same server."""
    monkeypatch.setenv("PROM_TOKEN", TOKEN)
    monkeypatch.setenv("PROM_HEADER", f"Bearer {TOKEN}")
    with serving(Stub(mode)) as url:
        if PROMTOOL and not settings:
            assert works_with_promtool(url + path) is not bool(said)
        if not said:
            check(url + path, **settings)
            return
        with pytest.raises(NodefallError) as caught:
            check(url + path, **settings)
    assert said in caught.value.message
    assert caught.value.hint


def test_a_login_page_is_named_and_nothing_is_sent_there() -> None:
    with serving(Stub("login")) as url, pytest.raises(NodefallError) as caught:
        check(url)
    assert caught.value.message == f"Prometheus at {url}: it redirects to https://sso.example, as to a login page"


def test_the_header_of_a_tenant_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub("tenant")
    monkeypatch.setenv("ORG", "team-a")
    with serving(stub) as url:
        check(url, headers={"X-Scope-OrgID": "team-a"})
        check(url, headers={"X-Scope-OrgID": {"env": "ORG"}})
    assert {headers["x-scope-orgid"] for headers in stub.headers} == {"team-a"}


def test_a_password_of_netrc_does_not_replace_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login ada password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("PROM_TOKEN", TOKEN)
    with serving(Stub("bearer")) as url:
        check(url, credentials={"env": "PROM_TOKEN"})


@pytest.mark.parametrize(
    ("known", "age", "settings", "said"),
    [
        (("http_requests_total",), 5.0, {}, ""),
        ((), 5.0, {}, "no sample of up"),
        ((), 5.0, {"freshness": "max(push_time_seconds)"}, ""),
        (("up",), 420.0, {}, "newest sample of Prometheus is 420 s old"),
        (("up",), 420.0, {"staleAfter": "10m"}, ""),
        (("http_requests_total",), 420.0, {}, "newest sample of Prometheus is 420 s old"),
        ((), 420.0, {"freshness": "max(push_time_seconds)"}, "420 s old"),
        ((), 5.0, {"freshness": "max(up)"}, "has no answer to max(up)"),
        (("up",), 5.0, {"freshness": "max(up)"}, "gives 1, which is not a time"),
    ],
)
def test_freshness(known: tuple[str, ...], age: float, settings: dict[str, Any], said: str) -> None:
    with serving(Stub(known=known, age=age)) as url:
        if not said:
            check(url, **settings)
            return
        with pytest.raises(NodefallError) as caught:
            check(url, **settings)
    assert said in caught.value.message
    assert "prometheus." in caught.value.hint or "gives" in said


def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path, "cluster")
    issue(authority, "server", NAMES)
    issue(authority, "ada")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    tls.load_verify_locations(authority.file)
    tls.verify_mode = ssl.CERT_REQUIRED
    own = {"clientCertificate": str(tmp_path / "ada.crt"), "clientKey": str(tmp_path / "ada.key")}
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "")
    with serving(Stub(), tls) as url:
        check(url, ca=str(authority.file), **own)
        check(url, insecureSkipVerify=True, **own)
        with pytest.raises(NodefallError, match="certificate is not accepted"):
            check(url, **own)
        with pytest.raises(NodefallError):
            check(url, ca=str(authority.file))
        with pytest.raises(BadInput, match="no such file"):
            check(url, ca=str(tmp_path / "none.crt"), **own)
    assert "not verified" in Prometheus(url=url, insecureSkipVerify=True).risks[0]  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"headers": {"X-Api-Key": "literal"}}, "may be a secret; refer to it"),
        ({"headers": {"Authorization": "Bearer x"}}, "may be a secret; refer to it"),
        ({"headers": {"Host": "x"}}, "cannot be set"),
        ({"headers": {"a b": "x"}}, "is not a name of a header"),
        ({"headers": {"X-Scope-OrgID": "a\nb"}}, "no line breaks"),
        ({"headers": {"Authorization": {"env": "A"}}, "credentials": {"env": "A"}}, "either credentials or the header"),
        ({"clientKey": "k"}, "give both"),
        ({"ca": "c", "insecureSkipVerify": True}, "give either ca or"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Prometheus.model_validate({"url": "http://x", **settings})


def test_secrets_are_in_no_message(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The server repeats the token, as a proxy in front of it may."""
    caplog.set_level("DEBUG")
    monkeypatch.setenv("PROM_TOKEN", TOKEN)
    stub = Stub()
    echo: Callable[..., Any] = lambda _self, _mode: (403, f"bad token {TOKEN}".encode(), {})  # noqa: E731
    monkeypatch.setattr(_Handler, "_by_mode", echo)
    with serving(stub) as url, pytest.raises(NodefallError) as caught:
        check(url, credentials={"env": "PROM_TOKEN"}, headers={"X-Other-Token": {"env": "PROM_TOKEN"}})
    assert "bad token ***" in caught.value.message
    assert TOKEN not in caught.value.message + caught.value.hint + caplog.text
    monkeypatch.setenv("PROM_TOKEN", f"{TOKEN}\nx")
    with pytest.raises(Refused, match="line break"):
        make_client(Prometheus(url=url, credentials=Secret(env="PROM_TOKEN")), resolve_secret)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("up", ["up"]),
        (QUERY, ['http_requests_total{code="500"}']),
        ("sum by (code) (rate(a[5m])) / on(code) group_left(x) b offset 5m", ["a", "b"]),
        ('a{x="}"} and b unless c > bool 5e3', ['a{x="}"}', "b", "c"]),
        ('{__name__=~"job:.*"}[1h:5m] # up', ['{__name__=~"job:.*"}']),
        ("histogram_quantile(0.9, sum(rate(d_bucket[5m])) without (le))", ["d_bucket"]),
        ("max_over_time(rate(x[1m])[10m:])", ["x"]),
        ("time() - 5", []),
        ("sum(a) by (b)", ["a"]),
        ("vector(1)", []),
    ],
)
def test_selectors(query: str, found: list[str]) -> None:
    assert selectors(query) == found
    assert bool(newest_of([query])) is (bool(found) and not found[0].startswith("{"))
