"""Watches: a ring of changes per kind, each event framed once and written to everybody who wants it."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from chaos.lab.objects import Object
from chaos.lab.servers.errors import ApiError
from chaos.lab.servers.resources import Resource
from chaos.lab.servers.selectors import Match
from chaos.lab.store import Change, Store

BOOKMARK_PERIOD = 60.0  # simulated seconds; k8s.io/apiserver/pkg/storage/cacher bookmarkFrequency
_BACKLOG = 8 << 20  # bytes that a watcher may be behind before it is dropped
_INITIAL_EVENTS_END = {"annotations": {"k8s.io/initial-events-end": "true"}}


def frame(type_: str, obj: Any) -> bytes:
    """One watch event as one chunk of HTTP/1.1."""
    line = msgspec.json.encode({"type": type_, "object": obj}) + b"\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


@dataclass(slots=True)
class Recorded:
    """A change and its frames by event type, made when first wanted."""

    change: Change
    frames: dict[str, bytes] = field(default_factory=dict)

    def framed(self, type_: str, resource: Resource) -> bytes:
        if type_ not in self.frames:
            self.frames[type_] = frame(type_, resource.show(self._object(type_)))
        return self.frames[type_]

    def _object(self, type_: str) -> Object:
        """An object that left the selection is shown as it was, with the new version."""
        change = self.change
        if type_ != "DELETED" or change.type == "DELETED" or change.before is None:
            return change.object
        return {**change.before, "metadata": {**change.before["metadata"], "resourceVersion": str(change.version)}}


@dataclass(eq=False)
class Watcher:
    """One watch. ``write`` takes frames; ``ended`` is set when the watcher was dropped."""

    resource: Resource
    namespace: str
    matches: Sequence[Match]
    bookmarks: bool
    transport: asyncio.Transport
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def wants(self, obj: Object) -> bool:
        if self.namespace and obj["metadata"].get("namespace") != self.namespace:
            return False
        return all(match(obj) for match in self.matches)

    def event_type(self, change: Change) -> str:
        """As the watch cache does: an object that leaves the selection is DELETED, one that enters is ADDED."""
        before = change.before is not None and self.wants(change.before)
        after = change.type != "DELETED" and self.wants(change.object)
        if before and after:
            return "MODIFIED"
        return "ADDED" if after else "DELETED" if before else ""

    def offer(self, recorded: Recorded) -> bool:
        """Write the change if it is wanted."""
        type_ = self.event_type(recorded.change)
        if type_:
            self.write(recorded.framed(type_, self.resource))
        return bool(type_)

    def write(self, data: bytes) -> None:
        """A client that does not read is cut off, as the API server does."""
        if self.transport.is_closing() or self.transport.get_write_buffer_size() > _BACKLOG:
            self.transport.abort()
            self.ended.set()
            return
        self.transport.write(data)

    def bookmark(self, version: int, initial: bool = False) -> None:
        metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
        self.write(
            frame("BOOKMARK", self.resource.show({"metadata": metadata | (_INITIAL_EVENTS_END if initial else {})}))
        )


class Watches:
    """All watches of a store. ``emitted`` is called whenever events were written."""

    def __init__(self, store: Store, ring: int, emitted: Callable[[], None]) -> None:
        self._store, self._emitted = store, emitted
        self._rings: dict[str, deque[Recorded]] = defaultdict(lambda: deque(maxlen=ring))
        self._forgotten: dict[str, int] = defaultdict(int)  # by plural: the newest version that fell out of the ring
        self._watchers: dict[str, set[Watcher]] = defaultdict(set)
        store.subscribe(self._changed)

    def __len__(self) -> int:
        return sum(len(watchers) for watchers in self._watchers.values())

    def since(self, plural: str, version: int) -> list[Recorded]:
        """Changes after ``version``. Raises ApiError 410 if some are forgotten."""
        if version < self._forgotten[plural]:
            raise ApiError(410, f"too old resource version: {version} ({self._forgotten[plural]})")
        return [recorded for recorded in self._rings[plural] if recorded.change.version > version]

    async def serve(self, watcher: Watcher, start: str, initial: bool, seconds: float | None) -> None:
        """Write events until the client leaves, falls behind, or ``seconds`` of simulated time are over."""
        plural = watcher.resource.plural
        try:
            version = self._version(start)
            backlog = self.since(plural, version) if version else []
        except ApiError as error:
            watcher.write(frame("ERROR", error.status()))
            return
        if initial or start in ("", "0"):
            self._initial(watcher, mark=initial)
        else:
            for recorded in backlog:
                watcher.offer(recorded)
        self._emitted()
        self._watchers[plural].add(watcher)
        sim = self._store.sim
        timers = [sim.after(BOOKMARK_PERIOD, self._periodic, watcher)] if watcher.bookmarks else []
        if seconds is not None:
            timers.append(sim.after(seconds, watcher.ended.set))
        try:
            await watcher.ended.wait()
            if watcher.bookmarks:
                watcher.bookmark(self._store.version)
        finally:
            self._watchers[plural].discard(watcher)
            watcher.ended.set()
            for timer in timers:
                timer.cancel()

    def end_all(self) -> None:
        for watchers in self._watchers.values():
            for watcher in list(watchers):
                watcher.ended.set()

    def keep_alive(self) -> None:
        """A bookmark to everybody: shows clients that a lab whose time stands still is there."""
        for watchers in self._watchers.values():
            for watcher in list(watchers):
                if watcher.bookmarks:
                    watcher.bookmark(self._store.version)

    def _version(self, start: str) -> int:
        if start in ("", "0"):
            return 0
        if not start.isdecimal():
            raise ApiError(400, f"Invalid value: {start!r}: resourceVersion is not a number")
        if int(start) > self._store.version:
            raise ApiError(504, f"Too large resource version: {start}, current: {self._store.version}", "Timeout")
        return int(start)

    def _initial(self, watcher: Watcher, mark: bool) -> None:
        for obj in self._store.list(watcher.resource.plural, watcher.namespace):
            if watcher.wants(obj):
                watcher.write(frame("ADDED", watcher.resource.show(obj)))
        if mark and watcher.bookmarks:
            watcher.bookmark(self._store.version, initial=True)

    def _periodic(self, watcher: Watcher) -> None:
        if watcher.ended.is_set():
            return
        watcher.bookmark(self._store.version)
        self._emitted()
        self._store.sim.after(BOOKMARK_PERIOD, self._periodic, watcher)

    def _changed(self, change: Change) -> None:
        ring = self._rings[change.plural]
        if len(ring) == ring.maxlen:
            self._forgotten[change.plural] = ring[0].change.version
        recorded = Recorded(change)
        ring.append(recorded)
        if sum([watcher.offer(recorded) for watcher in list(self._watchers[change.plural])]):
            self._emitted()


async def stream(request: web.Request) -> tuple[web.StreamResponse, asyncio.Transport]:
    """Begin the answer to a watch. Raises ConnectionResetError if the client is gone."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client is gone")
    assert isinstance(transport, asyncio.Transport)  # noqa: S101
    return response, transport
