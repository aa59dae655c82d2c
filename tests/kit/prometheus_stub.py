"""A server with the API of Prometheus that is not a plain Prometheus, and what asks it."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from chaos.cluster.observers.prometheus import check_freshness, make_client
from chaos.core.prometheus import Prometheus
from chaos.machines.local import resolve_secret

TOKEN = "prom-tok-en-secret"
BASIC = f"Basic {base64.b64encode(f'ada:{TOKEN}'.encode()).decode()}"
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


class Handler(BaseHTTPRequestHandler):
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
            "basic": (self.headers.get("Authorization") == BASIC, 401, b"", {}),
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
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"stub": stub}))
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
