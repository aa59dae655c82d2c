"""The loop that sees all objects of one resource: list, watch, and after every loss back again without a gap.

A watch that broke is resumed from its last resourceVersion, so that no event is lost; what comes late comes inside
the blind window, which is closed when the watch has delivered all that a fresh list has. Where the server no longer
has the events (410), a new list is compared with the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from chaos.model.kube import Metadata
from chaos.model.ports import Clock, Sink
from chaos.model.recording import ADDED, BOOKMARK, DELETED, MODIFIED, Line
from chaos.model.resources import Resource
from chaos.observers.api import KubeRejected, KubeUnreachable, WatchApi, WatchStream
from chaos.observers.cache import Cache, Key
from chaos.observers.health import ApiHealth
from chaos.observers.listing import pages
from chaos.observers.pace import Pace
from chaos.observers.sight import Sight
from chaos.observers.unreachable import TIMEOUT
from chaos.observers.wire import UNDECODABLE, CutLine, Found, Wire, split_lines
from chaos.observers.worker import Worker

GAP = 0.5  # seconds of cluster time between two watches that are no blindness
_WATCH_TIMEOUT = "280"
_GONE = 410
_WITHHELD = (403, 404)
_WATCH = "watch"  # the causes of blindness
_API = "api"


class _Broken(Exception):
    """This watch is of no more use; ``relist``: nor is its resourceVersion."""

    def __init__(self, reason: str, *, relist: bool = False) -> None:
        super().__init__(reason)
        self.relist = relist


class ListWatch:
    """An observer of one resource; ``path`` narrows it to a namespace.

    ``optional``: a run can do without it; where the user may not see it (403) or the server does not have it (404),
    that is a blind window, and nobody waits for it.
    """

    def __init__(
        self,
        resource: Resource,
        api: WatchApi,
        clock: Clock,
        health: ApiHealth | None = None,
        path: str = "",
        *,
        optional: bool = False,
    ) -> None:
        self.name = resource.plural
        self._optional = optional
        self._path = path or resource.path
        self._api, self._clock, self._health = api, clock, health
        self._wire = Wire(resource)
        self._lock = threading.Lock()
        self._stream: WatchStream | None = None
        self._kicks = 0  # how often the health check took the stream away
        self._worker = Worker(f"watch of {self.name}", clock, self._run, self._crashed)
        self._sink: Sink | None = None
        self._sight = Sight(self.name, clock, self._emit)
        self._cache = Cache(self.name, self._emit)
        self._pace = Pace()
        self._version: str | None = None  # None: list first
        self._synced = False
        self._began = 0.0
        self._good = 0.0  # when the API last showed that this source is seen
        self._opened: float | None = None  # when the open watch was opened
        self._ended: float | None = None  # when the watch before ended well
        self._fresh = False  # the resourceVersion is that of a list made just now
        self._pending: dict[Key, Metadata | None] = {}

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._good = self._began = self._clock.now()
        if self._health:
            self._health.subscribe(self)
            if self._health.reason:
                self.api_lost(self._good, self._health.reason)
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()
        with self._lock:
            stream = self._stream
        if stream:
            stream.abort()

    def synced(self) -> bool:
        return self._synced

    def api_lost(self, since: float, reason: str) -> None:
        """From the health check: a watch that is silent now may be dead, so it is opened anew."""
        with self._lock:
            self._kicks += 1
            stream = self._stream
        # Bytes that came since then may have come late, so they do not shorten the window.
        self._sight.lost(_API, max(since, self._began), reason)
        if stream:
            stream.abort()

    def api_back(self) -> None:
        """From the health check."""
        self._sight.regained(_API)

    def last(self, name: str, namespace: str = "") -> Found | None:
        """The last known state of an object."""
        return self._cache.get(name, namespace)

    def _emit(self, line: Line) -> None:
        if self._sink and not self._worker.stopping:
            self._sink(line)

    def _crashed(self, reason: str) -> None:
        self._sight.lost(_WATCH, self._good, reason)

    def _run(self) -> None:
        while not self._worker.stopping:
            try:
                if self._version is None:
                    self._list()
                self._watch()
            except (KubeUnreachable, KubeRejected, CutLine, _Broken) as error:
                if not self._worker.stopping:
                    self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Open a blind window and wait before the next try."""
        now = self._clock.now()
        status = error.status if isinstance(error, KubeRejected) else 0
        if status == _GONE or (isinstance(error, _Broken) and error.relist):
            self._version = None
        since = self._good
        silent = isinstance(error, KubeUnreachable) and error.kind == TIMEOUT
        if self._opened is not None and self._health and not silent:
            # It broke just now, so it was alive when the API last answered; one that fell silent may not have been.
            since = max(since, self._health.last_good)
        lived = now - self._opened if self._opened is not None else 0.0
        self._opened = self._ended = None
        self._fresh = False
        self._sight.lost(_WATCH, since, str(error))
        self._synced = self._synced or (self._optional and status in _WITHHELD)
        delay = self._pace.failed(lived)
        if delay:
            self._worker.pause(delay)

    def _list(self) -> None:
        """Everything that exists; what changed or vanished since the last list or event is told."""
        seen: set[Key] = set()
        version, now = "", self._clock.now()
        for page, anew in pages(self._api, self._path, self._wire):
            now = self._clock.now()
            if anew:
                seen.clear()
            for raw in page.items or ():
                found = self._found(raw, now)
                if found:
                    seen.add(found.key)
                    self._cache.listed(found, now)
            version = page.metadata.resource_version
        self._cache.unlisted(seen, now)
        self._good = now
        self._version, self._fresh = version, True
        self._synced = True

    def _watch(self) -> None:
        """One watch, from the last known resourceVersion to its good end."""
        kicks = self._kicks
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": _WATCH_TIMEOUT,
            "resourceVersion": self._version or "",
        }
        stream = self._api.stream(self._path, query)
        with stream as chunks:
            self._attach(stream, kicks)
            try:
                opened = self._established()
                for line in split_lines(self._received(chunks)):
                    self._line(line)
            finally:
                with self._lock:
                    self._stream = None
        self._opened, self._ended = None, self._good
        if not self._pace.ended(self._ended - opened):
            raise _Broken("the server ends watches at once")

    def _attach(self, stream: WatchStream, kicks: int) -> None:
        with self._lock:
            self._stream = stream
            late = self._kicks != kicks
        if late or self._worker.stopping:
            stream.abort()

    def _established(self) -> float:
        """The watch is open, since now: is it known to have missed nothing?"""
        now = self._opened = self._clock.now()
        if self._ended is not None and now - self._ended >= GAP:
            self._sight.lost(_WATCH, self._ended, f"no watch was open for {now - self._ended:.1f}s")
        self._pending = {}
        if self._sight.blind(_WATCH) and not self._fresh:
            self._pending = self._cache.behind(self._survey())
        self._fresh = False
        self._good = now
        if not self._pending:
            self._sight.regained(_WATCH)
        return now

    def _survey(self) -> dict[Key, Metadata]:
        """Which versions of which objects exist now."""
        there: dict[Key, Metadata] = {}
        for page, anew in pages(self._api, self._path, self._wire):
            if anew:
                there.clear()
            for raw in page.items or ():
                with suppress(*UNDECODABLE):  # the watch brings and records it
                    metadata = self._wire.head(raw)
                    there[metadata.namespace, metadata.name] = metadata
        return there

    def _received(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._good = self._clock.now()
            yield chunk
        self._good = self._clock.now()

    def _line(self, line: bytes) -> None:
        """One event. Raises _Broken for an ERROR."""
        try:
            event = self._wire.envelope(line)
            if event.type == "ERROR":
                status = self._wire.status(event.object)
                raise _Broken(f"the watch was ended: {status.code} {status.message}", relist=True)
            if event.type == BOOKMARK:
                self._bookmark(self._wire.head(event.object))
                return
        except UNDECODABLE as error:
            self._unseen(f"undecodable: {error}", self._good)
            return
        found = self._found(event.object, self._good)
        if found is None or event.type not in (ADDED, MODIFIED, DELETED):
            return
        self._version = found.metadata.resource_version or self._version
        self._cache.event(event.type, found, self._good)
        self._progress(event.type, found)

    def _bookmark(self, metadata: Metadata) -> None:
        """The server says that it has sent all there was up to here."""
        self._version = metadata.resource_version or self._version
        head = {"metadata": {"resourceVersion": metadata.resource_version}}
        self._emit(Line(self._good, self.name, BOOKMARK, msgspec.Raw(msgspec.json.encode(head))))
        if self._pending:
            self._pending = {}
            self._sight.regained(_WATCH)

    def _progress(self, type_: str, found: Found) -> None:
        """Close the blind window once the watch has brought what it owed."""
        if found.key not in self._pending:
            return
        wanted = self._pending[found.key]
        if type_ == DELETED:
            arrived = wanted is None or wanted.uid == found.metadata.uid
        else:
            arrived = wanted is not None and wanted.resource_version == found.metadata.resource_version
        if arrived:
            del self._pending[found.key]
            if not self._pending:
                self._sight.regained(_WATCH)

    def _found(self, raw: msgspec.Raw, t: float) -> Found | None:
        """None, and a blind moment, for what cannot even be told from others."""
        try:
            return self._wire.found(raw)
        except UNDECODABLE as error:
            self._unseen(f"undecodable: {error}", t)
            return None

    def _unseen(self, reason: str, t: float) -> None:
        window = {"from": t, "to": t, "reason": reason}
        self._emit(Line(t, "blind", self.name, msgspec.Raw(msgspec.json.encode(window))))
