"""Reflector: list and watch all objects of one resource, and resume after every failure without a gap.

A broken watch is resumed from its last resourceVersion, so that no event is lost, however late it comes; how current
it is, consistent reads and replays prove (``currency``). Only when the server no longer has the events (410), a new
list is compared with the object store, and what happened since the last proof is a blind window.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import msgspec

from chaos.cluster.api import WatchApi, WatchStream
from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.observers.base import Backoff, ThreadedObserver
from chaos.cluster.observers.currency import CurrencyProof, Key, ObjectStore, different, has_reached
from chaos.cluster.reads import ConsistentRead, iter_pages, read_version, read_versions, replay_events
from chaos.cluster.watch_codec import DECODE_ERRORS, DecodedObject, TruncatedLineError, WatchCodec, split_lines
from chaos.core.kube import Metadata, Resource
from chaos.core.ports import Clock, Sink
from chaos.core.recording import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, EntryKind, RecordingEntry

STALL = 20.0  # seconds of cluster time without a byte, while events are missing, after which a watch is dead
_BUSY = 0.1  # seconds of cluster time since the chunk before
_WAITED = 0.0005  # seconds of cluster time that reading a chunk takes at least, if it was not there yet
_WATCH_TIMEOUT = "280"
_GONE = 410
_UNAVAILABLE_STATUSES = (403, 404)
_REVERSED = "reversed"  # a cause of blindness
_CHANGES = frozenset({ADDED, MODIFIED, DELETED})


class _WatchError(Exception):
    """The watch cannot continue; ``relist``: nor can another from its resourceVersion."""

    def __init__(self, reason: str, *, relist: bool = False) -> None:
        super().__init__(reason)
        self.relist = relist


class Reflector(ThreadedObserver):
    """An observer of one resource; ``path`` narrows it to a namespace.

    ``optional``: a resource that the user may not list (403) or the server does not have (404) is a blind window, and
    counts as synced.
    """

    def __init__(
        self,
        resource: Resource,
        api: WatchApi,
        clock: Clock,
        path: str = "",
        *,
        optional: bool = False,
    ) -> None:
        super().__init__(f"watch of {resource.plural}", resource.plural, clock)
        self.name = resource.plural
        self._optional = optional
        self._path = path or resource.path
        self._api = api
        self._codec = WatchCodec(resource)
        self._lock = threading.Lock()
        self._stream: WatchStream | None = None
        self._replay_stream: WatchStream | None = None
        self._store = ObjectStore(self.name, self._emit)
        self._currency = CurrencyProof(self.name, clock, self._emit, self._store.known)
        self._backoff = Backoff()
        self._version: str | None = None  # None: list first
        self._bookmark = ""  # the newest resourceVersion up to which the watch says that it has sent everything
        self._contradiction = ""  # why the objects are to be listed again
        self._relisted: set[tuple[str, str]] = set()  # uids and versions for which they were
        self._versions_before: dict[str, str] | None = None  # by uid, at the start of the open blind window
        self._resume_at = ""  # an earlier resourceVersion for the next watch
        self._started_at = self._received_at = 0.0  # the latter: when the last bytes came
        self._opened_at: float | None = None  # when the open watch was opened

    def start(self, sink: Sink) -> None:
        self._started_at = self._received_at = self._clock.now()
        super().start(sink)

    def stop(self) -> None:
        super().stop()
        self._abort()
        if self._replay_stream:
            self._replay_stream.abort()

    @property
    def is_watching(self) -> bool:
        """Whether the objects were listed, so that a consistent read can be compared with them."""
        return self._version is not None

    @property
    def object_count(self) -> int:
        return len(self._store.known)

    @property
    def current_until(self) -> float:
        """The moment up to which all changes of objects in a list are proven to be emitted."""
        return max(self._currency.listed_until, self._started_at)

    @property
    def complete_until(self) -> float:
        """The moment up to which all changes are proven to be emitted."""
        return max(self._currency.complete_until, self._started_at)

    def prove_currency(self) -> None:
        """Compare a consistent read with what was emitted. From any thread. Raises KubeUnreachable, KubeRejected.

        A watch that has sent nothing for long although events are missing is opened again. If a bookmark has passed
        what was not sent, the objects are listed again.
        """
        known_version, begin = self._version or "", self._clock.now()
        bookmark = self._bookmark
        read = read_versions(self._api, self._path, begin)
        self._currency.prove(read, known_version)
        self._report_reversal()
        if not self._currency.behind:
            return
        behind = {(uid, read.objects[uid]) for uid in self._currency.behind if uid in read.objects}
        passed = {item for item in behind if bookmark and has_reached(bookmark, item[1])}
        if passed - self._relisted:  # once: what cannot be decoded stays behind
            self._relisted |= passed
            self._contradiction = "a list has versions that a bookmark of the watch has passed"
            self._abort()
            return
        now = self._clock.now()
        if now - max(self.current_until, self._received_at) > STALL:
            self._resume_at, self._received_at = self._currency.complete_version, now
            self._abort()

    def note_version(self) -> None:
        """Record the resourceVersion of now: what has a higher one is newer. From any thread. Raises as the proof."""
        known_version, begin = self._version or "", self._clock.now()
        self._currency.note_version(read_version(self._api, self._path), begin, known_version)
        self._report_reversal()

    def _report_reversal(self) -> None:
        """Open a blind window that does not end if the watch is of a state that no longer exists."""
        if self._currency.is_reversed and not self._blind_windows.is_open(_REVERSED):
            self._blind_windows.open(_REVERSED, self.current_until, "resourceVersions went back: was etcd restored?")

    def replay(self) -> None:
        """Have the server send again what it sent since the last proof that nothing is missing. From any thread.

        Raises KubeUnreachable, KubeRejected, TruncatedLineError.
        """
        version = self._currency.complete_version
        if version and self._currency.has_bookmarks:
            replay = replay_events(self._api, self._path, version, self._on_replay)
            if replay:
                self._currency.expect(replay)

    def _on_replay(self, stream: WatchStream) -> None:
        self._replay_stream = stream
        if self._thread.is_stopping:
            stream.abort()

    def last_known(self, name: str, namespace: str = "") -> DecodedObject | None:
        """The last known state of an object."""
        return self._store.get(name, namespace)

    def _abort(self) -> None:
        """End the open watch; the thread opens another."""
        with self._lock:
            if self._stream:
                self._stream.abort()

    def _blind_since(self) -> float:
        return self.complete_until

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
        """Wait before the next attempt. A blind window opens if versions are lost, or were never seen."""
        status = error.status if isinstance(error, KubeRejected) else 0
        if status == _GONE or (isinstance(error, _WatchError) and error.relist):
            self._version = None
        if self._version is None:
            self._blind_windows.open(self.cause, self.complete_until, str(error))
            if self._versions_before is None:
                self._versions_before = dict(self._store.known.versions)
        lifetime = self._clock.now() - self._opened_at if self._opened_at is not None else 0.0
        self._opened_at = None
        self._has_synced = self._has_synced or (self._optional and status in _UNAVAILABLE_STATUSES)
        delay = self._backoff.record_failure(lifetime)
        if delay:
            self._thread.pause(delay)

    def _list(self) -> None:
        """List all that exists; emit what changed or was deleted since the last list or event."""
        listed: dict[Key, Metadata] = {}
        begin = now = self._clock.now()
        version = ""
        for page, restarts in iter_pages(self._api, self._path, self._codec):
            now = self._clock.now()
            if restarts:
                listed.clear()
            for raw in page.items or ():
                obj = self._decode(raw, now)
                if obj:
                    listed[obj.key] = obj.metadata
                    self._store.apply_list_item(obj, now)
            version = page.metadata.resource_version
        self._store.delete_missing(set(listed), now)
        versions = {metadata.uid: metadata.resource_version for metadata in listed.values()}
        self._blind_windows.close(self.cause, different(self._versions_before or {}, versions))
        self._versions_before = None
        self._currency.restart(ConsistentRead(begin, version, versions))
        self._report_reversal()
        self._received_at, self._version, self._has_synced = now, version, True

    def _watch(self) -> None:
        """One watch, from the last known resourceVersion to its regular end. Raises _WatchError."""
        reason, self._contradiction = self._contradiction, ""
        if reason:
            raise _WatchError(reason, relist=True)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": _WATCH_TIMEOUT,
            "resourceVersion": self._resume_at or self._version or "",
        }
        self._resume_at = ""
        stream = self._api.stream(self._path, query)
        with stream as chunks:
            with self._lock:
                self._stream = stream
            if self._thread.is_stopping:
                stream.abort()
            opened = self._opened_at = self._received_at = self._clock.now()
            try:
                for line in split_lines(self._timed_chunks(stream, chunks)):
                    self._handle_event(line)
            finally:
                with self._lock:
                    self._stream = None
        self._opened_at = None
        if not self._backoff.record_end(self._received_at - opened):
            raise _WatchError("the server ends watches immediately")

    def _timed_chunks(self, stream: WatchStream, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks, of a busy watch many at a time: waking up for each event costs more than the event."""
        requested = self._clock.now()
        for chunk in chunks:
            before, self._received_at = self._received_at, self._clock.now()
            # What came without a wait may have been in a buffer of TLS or HTTP, with more behind it.
            may_gather = self._received_at - before < _BUSY and self._received_at - requested >= _WAITED
            yield chunk
            if may_gather and not stream.has_input():
                self._clock.gather()
            requested = self._clock.now()
        self._received_at = self._clock.now()

    def _handle_event(self, line: bytes) -> None:
        """Apply one event. Raises _WatchError for an ERROR."""
        try:
            type_, obj = self._codec.decode_event(line)
            if type_ == ERROR:
                status = self._codec.decode_status(line)
                raise _WatchError(f"the watch was ended: {status.code} {status.message}", relist=True)
        except DECODE_ERRORS as error:
            self._emit_blind_moment(f"undecodable: {error}", self._received_at)
            return
        if type_ == BOOKMARK:
            self._handle_bookmark(obj.metadata)
        elif type_ in _CHANGES:
            self._version = obj.metadata.resource_version or self._version
            self._store.apply_event(type_, obj, self._received_at)

    def _handle_bookmark(self, metadata: Metadata) -> None:
        """The server has sent all events up to this resourceVersion."""
        self._version = self._bookmark = metadata.resource_version or self._version or ""
        self._currency.reach(metadata.resource_version)
        head = {"metadata": {"resourceVersion": metadata.resource_version}}
        self._emit(RecordingEntry(self._received_at, self.name, BOOKMARK, msgspec.Raw(msgspec.json.encode(head))))

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
