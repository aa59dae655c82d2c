"""The stream of a watch to a client in this process: each frame is handed over as it is written.

Requests to the lab's servers without a connection: the same routes, guards and handlers.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn, Protocol, cast
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict

from chaos.lab.direct.host import Suspend
from chaos.lab.http.errors import ApiError
from chaos.lab.http.messages import Handle, PiecedResponse, Request
from chaos.lab.http.watch_stream import StreamFaults


class Watcher(Protocol):
    """The client of a watch."""

    def receive(self, data: bytes) -> None:
        """A piece of the body."""

    def end(self, *, is_cut: bool) -> None:
        """Nothing more comes; ``is_cut``: the connection was lost, and the response has no end."""


class _Flag:
    """Implements Flag in the tasks of this process."""

    def __init__(self) -> None:
        self.is_set = False
        self._waiting: list[Callable[[], object]] = []

    def set(self) -> None:
        self.is_set = True
        waiting, self._waiting = self._waiting, []
        for resume in waiting:
            resume()

    async def wait(self) -> None:
        if not self.is_set:
            await self

    def __await__(self) -> Generator[Suspend, None, None]:
        yield self._suspend

    def _suspend(self, resume: Callable[[], object]) -> Callable[[], object]:
        self._waiting.append(resume)
        return lambda: self._waiting.remove(resume)


class DirectStream:
    """Implements EventStream; what the client does not read it keeps itself."""

    def __init__(self, watcher: Watcher, faults: StreamFaults) -> None:
        self.response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self.done = _Flag()
        self._watcher, self._faults = watcher, faults

    def write(self, data: bytes) -> None:
        if self.done.is_set or self._faults.fault:
            return
        for piece in self._faults.pieces(data):
            self._watcher.receive(piece)
        if self._faults.ends:
            self.done.set()

    async def write_all(self, frames: Iterable[bytes]) -> None:
        for data in frames:
            self.write(data)

    def expire(self) -> None:
        if self._faults.may_expire:
            self.done.set()

    async def finish(self) -> None:
        self._watcher.end(is_cut=self._faults.ends_cut)


_PARAMETER = re.compile(r"\{(\w+)(?::([^}]+))?\}")
_Found = tuple[Callable[[Request], Awaitable[web.StreamResponse]], dict[str, str]]


class Server(Protocol):
    """A server of the lab, as its handlers by path."""

    def routes(self) -> list[web.RouteDef]: ...

    async def respond(self, request: Request, handle: Handle) -> web.StreamResponse: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers and body of a response."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(slots=True)
class MemoryRequest:
    """A request made in this process. Implements Request and DirectRequest. ``watcher``: who reads it, if a watch."""

    method: str
    path: str
    query: MultiDict[str]
    headers: Mapping[str, str]
    body: bytes = b""
    content_type: str = "application/json"
    match_info: Mapping[str, str] = field(default_factory=dict)
    watcher: Watcher | None = None

    @property
    def can_read_body(self) -> bool:
        return bool(self.body)

    async def read(self) -> bytes:
        return self.body

    def open_stream(self, faults: StreamFaults) -> DirectStream:
        if self.watcher is None:
            raise ApiError(406, "a watch needs a connection, and this request was made without one")
        return DirectStream(self.watcher, faults)


class DirectServer:
    """Hands requests to the handlers of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._fixed: dict[tuple[str, str], _Found] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Callable[[Request], Awaitable[web.StreamResponse]]]] = []
        for route in server.routes():
            handler = cast("Callable[[Request], Awaitable[web.StreamResponse]]", route.handler)
            if "{" in route.path:
                self._patterns.append((route.method, _compile(route.path), handler))
            else:
                self._fixed[route.method, route.path] = handler, {}

    async def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        query: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        content_type: str = "application/json",
        watcher: Watcher | None = None,
    ) -> Answer:
        """The response to one request; ``target`` is a path, with or without a query. That to a watch comes last."""
        path, _, text = target.partition("?")
        handler, parts = self._find(method, path)
        pairs = [*parse_qsl(text, keep_blank_values=True), *query]
        request = MemoryRequest(method, path, MultiDict(pairs), headers, body, content_type, parts, watcher)
        response = await self._server.respond(request, partial(handler, request))
        return Answer(response.status, _body_of(response), dict(response.headers))

    def _find(self, method: str, path: str) -> _Found:
        if found := self._fixed.get((method, path)):
            return found
        is_known = any(known == path for _, known in self._fixed)
        for wanted, pattern, handler in self._patterns:
            if match := pattern.fullmatch(path):
                if wanted in ("*", method):
                    return handler, match.groupdict()
                is_known = True
        return partial(_reject, is_known), {}


def _compile(path: str) -> re.Pattern[str]:
    """The pattern of a path of aiohttp's router: ``/apis/{group}/{rest:.+}``."""
    pieces, position = [], 0
    for match in _PARAMETER.finditer(path):
        pieces += [re.escape(path[position : match.start()]), f"(?P<{match[1]}>{match[2] or '[^/]+'})"]
        position = match.end()
    return re.compile("".join([*pieces, re.escape(path[position:])]))


async def _reject(is_known: bool, request: Request) -> NoReturn:
    """Reject a request like aiohttp's router does for an unknown path or method."""
    if is_known:
        raise web.HTTPMethodNotAllowed(request.method, [])
    raise web.HTTPNotFound


def _body_of(response: web.StreamResponse) -> bytes:
    if isinstance(response, PiecedResponse):
        return response.whole
    body = response.body if isinstance(response, web.Response) else None
    assert body is None or isinstance(body, (bytes, bytearray))  # noqa: S101 - no handler answers otherwise
    return bytes(body or b"")
