"""A small API server on loopback that misbehaves on request, and a clock that tests turn by hand."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from chaos.cluster.client import ApiClient, connect
from chaos.core.recording import Currency, RecordingEntry
from chaos.core.threads import SYSTEM_THREADS

PATIENCE = 60.0  # wall seconds until a test gives up
JSON = dict[str, Any]


class ManualClock:
    """Time moves only when :meth:`advance` is called, for threads that wait for sockets, too.

    What waits for nothing but time is tested with ``tests.kit.turn_clock``.
    """

    threads = SYSTEM_THREADS

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start
        self._woken = False
        self._changed = threading.Condition()
        self._dues: list[float] = []  # of all sleeps
        self.gathered: list[float] = []  # when

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> bool:
        with self._changed:
            due = self._now + seconds
            self._dues.append(due)
            self._changed.wait_for(lambda: self._woken or self._now >= due)
            self._dues.remove(due)
            return not self._woken

    def gather(self) -> None:
        self.gathered.append(self._now)

    def settle(self) -> bool:
        return False

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def resume(self) -> None:
        self._woken = False

    def advance(self, seconds: float) -> None:
        with self._changed:
            self._now += seconds
            self._changed.notify_all()

    def until(self, holds: Callable[[], bool], step: float = 0.0) -> None:
        """Wait until ``holds``, moving time by ``step`` while a thread sleeps and none is overdue.

        So a thread that waits for a socket on a busy machine misses no time.
        """
        nap, end = threading.Event(), time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, "it never came"
            with self._changed:
                if self._dues and min(self._dues) > self._now:
                    self.advance(step)
            nap.wait(0.005)


class Lines:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.all: list[RecordingEntry] = []

    def __call__(self, line: RecordingEntry) -> None:
        self.all.append(line)

    def events(self) -> list[tuple[str, str, str]]:
        """(type, name, resourceVersion) of every object line but bookmarks."""
        found = []
        for line in self.all:
            if line.kind not in ("blind", "current", "metrics", "host") and line.type != "BOOKMARK":
                metadata = msgspec.json.decode(line.object)["metadata"]
                found.append((line.type, metadata["name"], metadata.get("resourceVersion", "")))
        return found

    def names(self) -> list[str]:
        return [name for _, name, _ in self.events()]

    def proofs(self) -> list[Currency]:
        """Every ``current`` line."""
        return [msgspec.json.decode(line.object, type=Currency) for line in self.of("current")]

    def changed(self) -> list[str]:
        """The uids of the objects that changed in the last blind window, in order."""
        last = [msgspec.json.decode(line.object) for line in self.all if line.kind == "blind"][-1]
        return sorted(last["changed"])

    def windows(self) -> list[tuple[float, float | None, str]]:
        """(from, to, reason) of every blind line."""
        return [
            (window["from"], window["to"], window["reason"])
            for line in self.all
            if line.kind == "blind"
            for window in [msgspec.json.decode(line.object)]
        ]

    def of(self, kind: str) -> list[RecordingEntry]:
        return [line for line in self.all if line.kind == kind]


def pod(name: str, **more: Any) -> JSON:
    return {
        "metadata": {"name": name, "namespace": "demo", "uid": f"uid-{name}"},
        "status": {"phase": "Running"},
    } | more


class KubeServer:
    """One collection, /api/v1/pods, with a log of events; every fault is an attribute or a method."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.flowing = threading.Event()  # cleared: accepts, but answers and sends nothing
        self.flowing.set()
        self.objects: dict[str, JSON] = {}
        self.deletions: Counter[str] = Counter()  # by the uid of the first of that name
        self.version = 100
        self.log: list[tuple[int, bytes]] = []
        self.oldest = 0  # a watch from before this is gone
        self.gone_as_event = False
        self.expire_continue = False
        self.fail_continue = 0  # so many pages that are not the first
        self.end_at_once = False
        self.closing = False  # every connection is closed without an answer
        self.halve_next = False
        self.ends = self.cuts = 0
        self.watches = 0  # open ones
        self.opened = 0  # ever
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: dict[str, tuple[int, bytes]] = {"/readyz": (200, b"ok")}
        self.redirect: str | None = None
        self.delivering = threading.Event()  # cleared: the watches deliver nothing, everything else is answered
        self.delivering.set()

    def put(self, obj: JSON, quietly: bool = False) -> None:
        """Add or change an object. ``quietly``: the event never appears in the log."""
        with self.changed:
            self.version += 1
            name = obj["metadata"]["name"]
            type_ = "MODIFIED" if name in self.objects else "ADDED"
            metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
            if self.deletions[metadata["uid"]]:  # a uid never comes back
                metadata["uid"] += f"-{self.deletions[metadata['uid']]}"
            stored = {**obj, "metadata": metadata}
            self.objects[name] = stored
            if not quietly:
                self._event(type_, stored)

    def delete(self, name: str, quietly: bool = False) -> None:
        with self.changed:
            self.version += 1
            last = self.objects.pop(name)
            self.deletions[f"uid-{name}"] += 1
            if not quietly:
                metadata = {**last["metadata"], "resourceVersion": str(self.version)}
                self._event("DELETED", {**last, "metadata": metadata})

    def say(self, line: bytes) -> None:
        """Put a raw line into the watch."""
        with self.changed:
            self.version += 1
            self.log.append((self.version, line))
            self.changed.notify_all()

    def bookmark(self) -> None:
        with self.changed:
            obj = {"metadata": {"resourceVersion": str(self.version)}, "spec": {"containers": None}, "status": {}}
            self._event("BOOKMARK", {"kind": "Pod", **obj})

    def compact(self) -> None:
        """Forget all events: only a new list has the state."""
        self.oldest = self.version

    def end_watches(self) -> None:
        with self.changed:
            self.ends += 1
            self.changed.notify_all()

    def cut_watches(self) -> None:
        with self.changed:
            self.cuts += 1
            self.changed.notify_all()

    def count(self, watch: bool) -> int:
        return sum(("watch" in query) is watch for path, query in self.requests if path == "/api/v1/pods")

    def _event(self, type_: str, obj: JSON) -> None:
        line = json.dumps({"type": type_, "object": obj}, ensure_ascii=False).encode() + b"\n"
        self.log.append((self.version, line))
        self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: KubeServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Quiet."""

    def do_GET(self) -> None:
        self._any()

    def do_POST(self) -> None:
        self._any()

    def _any(self) -> None:
        state = self.state
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        state.requests.append((parts.path, query))
        state.headers.append({k.lower(): v for k, v in self.headers.items()})
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        state.flowing.wait(PATIENCE)
        if state.closing:
            self.close_connection = True
        elif parts.path in state.answers:
            self._answer(*state.answers[parts.path])
        elif parts.path != "/api/v1/pods":
            self._answer(404, b"{}")
        elif "watch" in query:
            self._watch(int(query["resourceVersion"]))
        else:
            self._list(query)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if self.state.redirect:
            self.send_header("Location", self.state.redirect)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _list(self, query: dict[str, str]) -> None:
        state = self.state
        with state.changed:
            if "continue" in query and state.expire_continue:
                self._answer(410, b'{"kind":"Status","code":410,"message":"continue token expired"}')
                return
            if "continue" in query and state.fail_continue:
                state.fail_continue -= 1
                self._answer(500, b'{"kind":"Status","code":500,"message":"etcd has no leader"}')
                return
            items = list(state.objects.values())
            first = int(query.get("continue", "0"))
            limit = int(query.get("limit", "0")) or len(items)
            metadata = {"resourceVersion": str(state.version)}
            if first + limit < len(items):
                metadata["continue"] = str(first + limit)
            body = {"kind": "PodList", "metadata": metadata, "items": items[first : first + limit]}
        self._answer(200, json.dumps(body).encode())

    def _watch(self, version: int) -> None:
        state = self.state
        status = {"kind": "Status", "code": 410, "message": "too old resource version"}
        if version < state.oldest and not state.gone_as_event:
            self._answer(410, json.dumps(status).encode())
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with state.changed:
            ends, cuts = state.ends, state.cuts
            state.watches += 1
            state.opened += 1
        try:
            if version < state.oldest:
                self._chunk(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            elif not state.end_at_once:
                self._events(version, ends, cuts)
            if state.cuts == cuts:
                self._chunk(b"")
            else:  # also if it was cut just after it had ended: without a last chunk the client would wait forever
                self.close_connection = True
        except OSError:  # the client has gone
            self.close_connection = True
        finally:
            with state.changed:
                state.watches -= 1

    def _events(self, version: int, ends: int, cuts: int) -> None:
        state = self.state
        sent = next((i for i, (v, _) in enumerate(state.log) if v > version), len(state.log))
        while True:
            with state.changed:
                state.changed.wait_for(partial(self._news, sent, ends, cuts), timeout=PATIENCE)
                batch = state.log[sent:]
                ending, cut = state.ends != ends, state.cuts != cuts
            for _, line in batch:
                state.flowing.wait(PATIENCE)
                state.delivering.wait(PATIENCE)
                if state.halve_next:
                    state.halve_next = False
                    self._chunk(line[: len(line) // 2])
                    ending = True
                    break
                self._chunk(line)
            sent += len(batch)
            if cut:
                self._reset()
            if ending or cut:
                return

    def _news(self, sent: int, ends: int, cuts: int) -> bool:
        return len(self.state.log) > sent or self.state.ends != ends or self.state.cuts != cuts

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that break off are the point of these tests."""


@contextmanager
def serving(state: KubeServer, tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[int]:
    """Serve on 127.0.0.1; the port."""
    handler = type("Handler", (_Handler,), {"state": state})
    server = _Server(("127.0.0.1", port), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        state.flowing.set()
        state.delivering.set()
        state.cut_watches()
        server.shutdown()
        server.server_close()


def kubeconfig(folder: Path, server: str, user: JSON | None = None, **cluster: Any) -> Path:
    """A kubeconfig file (JSON is YAML) with context ``test``."""
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(json.dumps(document))
    return path


def plain_api(folder: Path, port: int) -> ApiClient:
    return connect(str(kubeconfig(folder, f"http://127.0.0.1:{port}")))
