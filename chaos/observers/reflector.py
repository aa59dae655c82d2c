"""Reflector: list and watch all objects of one resource, and resume after every failure without a gap.

A broken watch is resumed from its last resourceVersion, so that no event is lost. Late events fall into the blind
window, which is closed when the watch has delivered everything that a new list has. When the server no longer has the
events (410), a new list is compared with the object store.
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
from chaos.model.recording import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, EntryKind, RecordingEntry
from chaos.model.resources import Resource
from chaos.observers.backoff import Backoff
from chaos.observers.blind_windows import BlindWindowTracker
from chaos.observers.health import ApiHealth
from chaos.observers.object_store import Key, ObjectStore
from chaos.observers.observer_thread import ObserverThread

MAX_GAP = 0.5  # seconds of cluster time between two watches without a blind window
_WATCH_TIMEOUT = "280"
_GONE = 410
_UNAVAILABLE_STATUSES = (403, 404)
_WATCH_CAUSE = "watch"  # causes of blind windows
_API_CAUSE = "api"
_CHANGES = frozenset({ADDED, MODIFIED, DELETED})


class _WatchError(Exception):
    """The watch cannot go on; ``relist``: nor can another from its resourceVersion."""

    def __init__(self, reason: str, *, relist: bool = False) -> None:
        super().__init__(reason)
        self.relist = relist


class Reflector:
    """An observer of one resource; ``path`` narrows it to a namespace.

    ``optional``: a resource that the user may not list (403) or the server does not have (404) is a blind window, and
    counts as synced.
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
        self._aborts = 0  # how often the health probe aborted the stream
        self._thread = ObserverThread(f"watch of {self.name}", clock, self._run, self._on_crash)
        self._sink: Sink | None = None
        self._blind_windows = BlindWindowTracker(self.name, clock, self._emit)
        self._store = ObjectStore(self.name, self._emit)
        self._backoff = Backoff()
        self._version: str | None = None  # None: list first
        self._synced = False
        self._started_at = 0.0
        self._last_good = 0.0  # when the API last proved that events arrive
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
        """Reopen the watch: one without events may be dead."""
        with self._lock:
            self._aborts += 1
            stream = self._stream
        # Bytes that arrived since then may be late, so they do not shorten the window.
        self._blind_windows.open(_API_CAUSE, max(since, self._started_at), reason)
        if stream:
            stream.abort()

    def on_api_available(self) -> None:
        """Close the blind window of the API server."""
        self._blind_windows.close(_API_CAUSE)

    def last_known(self, name: str, namespace: str = "") -> DecodedObject | None:
        """The last known state of an object."""
        return self._store.get(name, namespace)

    def _emit(self, entry: RecordingEntry) -> None:
        if self._sink and not self._thread.is_stopping:
            self._sink(entry)

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
        """Open a blind window and wait before the next attempt."""
        now = self._clock.now()
        status = error.status if isinstance(error, KubeRejected) else 0
        if status == _GONE or (isinstance(error, _WatchError) and error.relist):
            self._version = None
        since = self._last_good
        silent = isinstance(error, KubeUnreachable) and error.kind == TIMEOUT
        if self._opened_at is not None and self._health and not silent:
            # The watch broke just now, so it was alive at the last good probe; one that timed out may not have been.
            since = max(since, self._health.last_good)
        lifetime = now - self._opened_at if self._opened_at is not None else 0.0
        self._opened_at = self._ended_at = None
        self._version_is_fresh = False
        self._blind_windows.open(_WATCH_CAUSE, since, str(error))
        self._synced = self._synced or (self._optional and status in _UNAVAILABLE_STATUSES)
        delay = self._backoff.record_failure(lifetime)
        if delay:
            self._thread.pause(delay)

    def _list(self) -> None:
        """List everything that exists; emit what changed or was deleted since the last list or event."""
        seen: set[Key] = set()
        version, now = "", self._clock.now()
        for page, restarts in iter_pages(self._api, self._path, self._codec):
            now = self._clock.now()
            if restarts:
                seen.clear()
            for raw in page.items or ():
                obj = self._decode(raw, now)
                if obj:
                    seen.add(obj.key)
                    self._store.apply_list_item(obj, now)
            version = page.metadata.resource_version
        self._store.delete_missing(seen, now)
        self._last_good = now
        self._version, self._version_is_fresh = version, True
        self._synced = True

    def _watch(self) -> None:
        """One watch, from the last known resourceVersion to its regular end."""
        aborts = self._aborts
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": _WATCH_TIMEOUT,
            "resourceVersion": self._version or "",
        }
        stream = self._api.stream(self._path, query)
        with stream as chunks:
            self._attach(stream, aborts)
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

    def _attach(self, stream: WatchStream, aborts: int) -> None:
        with self._lock:
            self._stream = stream
            late = self._aborts != aborts
        if late or self._thread.is_stopping:
            stream.abort()

    def _on_open(self) -> float:
        """Record that the watch is open since now, and close the blind window if no event is missing."""
        now = self._opened_at = self._clock.now()
        if self._ended_at is not None and now - self._ended_at >= MAX_GAP:
            self._blind_windows.open(
                _WATCH_CAUSE, self._ended_at, f"no watch was open for {now - self._ended_at:.1f} s"
            )
        self._pending = {}
        if self._blind_windows.is_open(_WATCH_CAUSE) and not self._version_is_fresh:
            self._pending = self._store.difference(self._list_versions())
        self._version_is_fresh = False
        self._last_good = now
        if not self._pending:
            self._blind_windows.close(_WATCH_CAUSE)
        return now

    def _list_versions(self) -> dict[Key, Metadata]:
        """The current versions of all objects."""
        versions: dict[Key, Metadata] = {}
        for page, restarts in iter_pages(self._api, self._path, self._codec):
            if restarts:
                versions.clear()
            for raw in page.items or ():
                with suppress(*DECODE_ERRORS):  # the watch delivers and records it
                    metadata = self._codec.decode_metadata(raw)
                    versions[metadata.namespace, metadata.name] = metadata
        return versions

    def _timed_chunks(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._last_good = self._clock.now()
            yield chunk
        self._last_good = self._clock.now()

    def _handle_event(self, line: bytes) -> None:
        """Apply one event. Raises _WatchError for an ERROR."""
        try:
            type_, obj = self._codec.decode_event(line)
            if type_ == ERROR:
                status = self._codec.decode_status(line)
                raise _WatchError(f"the watch was ended: {status.code} {status.message}", relist=True)
        except DECODE_ERRORS as error:
            self._emit_blind_moment(f"undecodable: {error}", self._last_good)
            return
        if type_ == BOOKMARK:
            self._handle_bookmark(obj.metadata)
        elif type_ in _CHANGES:
            self._version = obj.metadata.resource_version or self._version
            self._store.apply_event(type_, obj, self._last_good)
            self._mark_delivered(type_, obj)

    def _handle_bookmark(self, metadata: Metadata) -> None:
        """The server has sent all events up to this resourceVersion."""
        self._version = metadata.resource_version or self._version
        head = {"metadata": {"resourceVersion": metadata.resource_version}}
        self._emit(RecordingEntry(self._last_good, self.name, BOOKMARK, msgspec.Raw(msgspec.json.encode(head))))
        if self._pending:
            self._pending = {}
            self._blind_windows.close(_WATCH_CAUSE)

    def _mark_delivered(self, type_: str, obj: DecodedObject) -> None:
        """Close the blind window once the watch has delivered all pending versions."""
        if obj.key not in self._pending:
            return
        expected = self._pending[obj.key]
        if type_ == DELETED:
            arrived = expected is None or expected.uid == obj.metadata.uid
        else:
            arrived = expected is not None and expected.resource_version == obj.metadata.resource_version
        if arrived:
            del self._pending[obj.key]
            if not self._pending:
                self._blind_windows.close(_WATCH_CAUSE)

    def _decode(self, raw: msgspec.Raw, t: float) -> DecodedObject | None:
        """The object; None, with a blind window of no length, if its metadata cannot be decoded."""
        try:
            return self._codec.decode_object(raw)
        except DECODE_ERRORS as error:
            self._emit_blind_moment(f"undecodable: {error}", t)
            return None

    def _emit_blind_moment(self, reason: str, t: float) -> None:
        window = {"from": t, "to": t, "reason": reason}
        self._emit(RecordingEntry(t, EntryKind.BLIND, self.name, msgspec.Raw(msgspec.json.encode(window))))
