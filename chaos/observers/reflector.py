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

from chaos.kube.errors import TIMEOUT, KubeRejected, KubeUnreachable
from chaos.kube.pagination import iter_pages
from chaos.kube.watch_codec import DECODE_ERRORS, DecodedObject, TruncatedLineError, WatchCodec, split_lines
from chaos.kube.watch_stream import WatchApi, WatchStream
from chaos.model.kube import Metadata
from chaos.model.ports import Clock, Sink
from chaos.model.recording import ADDED, BOOKMARK, DELETED, MODIFIED, RecordingEntry
from chaos.model.resources import Resource
from chaos.observers.backoff import Backoff
from chaos.observers.blind_windows import BlindWindowTracker
from chaos.observers.health import ApiHealth
from chaos.observers.object_store import Key, ObjectStore
from chaos.observers.observer_thread import ObserverThread

MAX_GAP = 0.5  # seconds of cluster time between two watches that are no blindness
_WATCH_TIMEOUT = "280"
_GONE = 410
_UNAVAILABLE_STATUSES = (403, 404)
_WATCH_CAUSE = "watch"  # the causes of blindness
_API_CAUSE = "api"


class _WatchError(Exception):
    """This watch is of no more use; ``relist``: nor is its resourceVersion."""

    def __init__(self, reason: str, *, relist: bool = False) -> None:
        super().__init__(reason)
        self.relist = relist


class Reflector:
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
        self._codec = WatchCodec(resource)
        self._lock = threading.Lock()
        self._stream: WatchStream | None = None
        self._aborts = 0  # how often the health check took the stream away
        self._thread = ObserverThread(f"watch of {self.name}", clock, self._run, self._on_crash)
        self._sink: Sink | None = None
        self._blind_windows = BlindWindowTracker(self.name, clock, self._emit)
        self._store = ObjectStore(self.name, self._emit)
        self._backoff = Backoff()
        self._version: str | None = None  # None: list first
        self._synced = False
        self._started_at = 0.0
        self._last_good = 0.0  # when the API last showed that this source is seen
        self._opened_at: float | None = None  # when the open watch was opened
        self._ended_at: float | None = None  # when the watch before ended well
        self._version_is_fresh = False  # the resourceVersion is that of a list made just now
        self._pending: dict[Key, Metadata | None] = {}

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._last_good = self._started_at = self._clock.now()
        if self._health:
            self._health.subscribe(self)
            if self._health.reason:
                self.on_api_unavailable(self._last_good, self._health.reason)
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()
        with self._lock:
            stream = self._stream
        if stream:
            stream.abort()

    def has_synced(self) -> bool:
        return self._synced

    def on_api_unavailable(self, since: float, reason: str) -> None:
        """From the health check: a watch that is silent now may be dead, so it is opened anew."""
        with self._lock:
            self._aborts += 1
            stream = self._stream
        # Bytes that came since then may have come late, so they do not shorten the window.
        self._blind_windows.open(_API_CAUSE, max(since, self._started_at), reason)
        if stream:
            stream.abort()

    def on_api_available(self) -> None:
        """From the health check."""
        self._blind_windows.close(_API_CAUSE)

    def last_known(self, name: str, namespace: str = "") -> DecodedObject | None:
        """The last known state of an object."""
        return self._store.get(name, namespace)

    def _emit(self, line: RecordingEntry) -> None:
        if self._sink and not self._thread.is_stopping:
            self._sink(line)

    def _on_crash(self, reason: str) -> None:
        self._blind_windows.open(_WATCH_CAUSE, self._last_good, reason)

    def _run(self) -> None:
        while not self._thread.is_stopping:
            try:
                if self._version is None:
                    self._list()
                self._watch()
            except (KubeUnreachable, KubeRejected, TruncatedLineError, _WatchError) as error:
                if not self._thread.is_stopping:
                    self._on_failure(error)

    def _on_failure(self, error: Exception) -> None:
        """Open a blind window and wait before the next try."""
        now = self._clock.now()
        status = error.status if isinstance(error, KubeRejected) else 0
        if status == _GONE or (isinstance(error, _WatchError) and error.relist):
            self._version = None
        since = self._last_good
        silent = isinstance(error, KubeUnreachable) and error.kind == TIMEOUT
        if self._opened_at is not None and self._health and not silent:
            # It broke just now, so it was alive when the API last answered; one that fell silent may not have been.
            since = max(since, self._health.last_good)
        lived = now - self._opened_at if self._opened_at is not None else 0.0
        self._opened_at = self._ended_at = None
        self._version_is_fresh = False
        self._blind_windows.open(_WATCH_CAUSE, since, str(error))
        self._synced = self._synced or (self._optional and status in _UNAVAILABLE_STATUSES)
        delay = self._backoff.record_failure(lived)
        if delay:
            self._thread.pause(delay)

    def _list(self) -> None:
        """Everything that exists; what changed or vanished since the last list or event is told."""
        seen: set[Key] = set()
        version, now = "", self._clock.now()
        for page, anew in iter_pages(self._api, self._path, self._codec):
            now = self._clock.now()
            if anew:
                seen.clear()
            for raw in page.items or ():
                found = self._decode(raw, now)
                if found:
                    seen.add(found.key)
                    self._store.apply_list_item(found, now)
            version = page.metadata.resource_version
        self._store.delete_missing(seen, now)
        self._last_good = now
        self._version, self._version_is_fresh = version, True
        self._synced = True

    def _watch(self) -> None:
        """One watch, from the last known resourceVersion to its good end."""
        kicks = self._aborts
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
                opened = self._on_open()
                for line in split_lines(self._timed_chunks(chunks)):
                    self._handle_event(line)
            finally:
                with self._lock:
                    self._stream = None
        self._opened_at, self._ended_at = None, self._last_good
        if not self._backoff.record_end(self._ended_at - opened):
            raise _WatchError("the server ends watches at once")

    def _attach(self, stream: WatchStream, kicks: int) -> None:
        with self._lock:
            self._stream = stream
            late = self._aborts != kicks
        if late or self._thread.is_stopping:
            stream.abort()

    def _on_open(self) -> float:
        """The watch is open, since now: is it known to have missed nothing?"""
        now = self._opened_at = self._clock.now()
        if self._ended_at is not None and now - self._ended_at >= MAX_GAP:
            self._blind_windows.open(_WATCH_CAUSE, self._ended_at, f"no watch was open for {now - self._ended_at:.1f}s")
        self._pending = {}
        if self._blind_windows.is_open(_WATCH_CAUSE) and not self._version_is_fresh:
            self._pending = self._store.difference(self._list_versions())
        self._version_is_fresh = False
        self._last_good = now
        if not self._pending:
            self._blind_windows.close(_WATCH_CAUSE)
        return now

    def _list_versions(self) -> dict[Key, Metadata]:
        """Which versions of which objects exist now."""
        there: dict[Key, Metadata] = {}
        for page, anew in iter_pages(self._api, self._path, self._codec):
            if anew:
                there.clear()
            for raw in page.items or ():
                with suppress(*DECODE_ERRORS):  # the watch brings and records it
                    metadata = self._codec.decode_metadata(raw)
                    there[metadata.namespace, metadata.name] = metadata
        return there

    def _timed_chunks(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._last_good = self._clock.now()
            yield chunk
        self._last_good = self._clock.now()

    def _handle_event(self, line: bytes) -> None:
        """One event. Raises _Broken for an ERROR."""
        try:
            event = self._codec.decode_event(line)
            if event.type == "ERROR":
                status = self._codec.decode_status(event.object)
                raise _WatchError(f"the watch was ended: {status.code} {status.message}", relist=True)
            if event.type == BOOKMARK:
                self._handle_bookmark(self._codec.decode_metadata(event.object))
                return
        except DECODE_ERRORS as error:
            self._emit_blind_moment(f"undecodable: {error}", self._last_good)
            return
        found = self._decode(event.object, self._last_good)
        if found is None or event.type not in (ADDED, MODIFIED, DELETED):
            return
        self._version = found.metadata.resource_version or self._version
        self._store.apply_event(event.type, found, self._last_good)
        self._mark_delivered(event.type, found)

    def _handle_bookmark(self, metadata: Metadata) -> None:
        """The server says that it has sent all there was up to here."""
        self._version = metadata.resource_version or self._version
        head = {"metadata": {"resourceVersion": metadata.resource_version}}
        self._emit(RecordingEntry(self._last_good, self.name, BOOKMARK, msgspec.Raw(msgspec.json.encode(head))))
        if self._pending:
            self._pending = {}
            self._blind_windows.close(_WATCH_CAUSE)

    def _mark_delivered(self, type_: str, found: DecodedObject) -> None:
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
                self._blind_windows.close(_WATCH_CAUSE)

    def _decode(self, raw: msgspec.Raw, t: float) -> DecodedObject | None:
        """None, and a blind moment, for what cannot even be told from others."""
        try:
            return self._codec.decode_object(raw)
        except DECODE_ERRORS as error:
            self._emit_blind_moment(f"undecodable: {error}", t)
            return None

    def _emit_blind_moment(self, reason: str, t: float) -> None:
        window = {"from": t, "to": t, "reason": reason}
        self._emit(RecordingEntry(t, "blind", self.name, msgspec.Raw(msgspec.json.encode(window))))
