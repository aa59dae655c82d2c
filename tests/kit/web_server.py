"""An HTTP server on loopback in this process, which answers as a test has it and remembers what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Received:
    """A request. ``headers``: by lower-case name."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """``hang``: no answer at all before the end of the test. ``endless``: the body goes on until the client leaves."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    endless: bool = False


class WebServer:
    """``answer`` makes the answer to a request."""

    def __init__(self, answer: Callable[[Received], Answer]) -> None:
        self.answer = answer
        self.received: list[Received] = []
        self.ended = threading.Event()
        self.url = ""

    def paths(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.received]


@contextmanager
def web_server(answer: Callable[[Received], Answer] | Answer | None = None) -> Iterator[WebServer]:
    given = answer or Answer()
    server = WebServer((lambda _: given) if isinstance(given, Answer) else given)
    handler = type("Handler", (_Handler,), {"server_state": server})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        http.shutdown()
        http.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_state: WebServer
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        request = Received(self.command, parts.path, query, headers, body)
        self.server_state.received.append(request)
        answer = self.server_state.answer(request)
        if answer.hang:
            self.server_state.ended.wait(60)
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.endless:
            self.close_connection = True
            self.end_headers()
            self._flood()
            return
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _flood(self) -> None:
        try:
            while not self.server_state.ended.is_set():
                self.wfile.write(b" " * 65536)
        except OSError:
            return  # the client has left

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of the standard library

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the standard library has it
        """Nothing: tests read ``received``."""
