"""The last known state of the objects of a resource, and its currency: until when a watch delivered everything.

A watch that is resumed loses no version, so the sequence of states is complete and only their times are uncertain: a
version is not older than the last moment up to which its object was proven to be current. Consistent reads prove that
of objects that they list. That no other object came and went, bookmarks prove: of the watch itself, or of a replay.
Lists and events become entries, once each.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping

import msgspec

from chaos.cluster.reads import ConsistentRead, EventReplay
from chaos.cluster.watch_codec import DecodedObject
from chaos.core.kube import version_number
from chaos.core.ports import Clock, Sink
from chaos.core.recording import DELETED, LIST, MISSING_AT_RELIST, Currency, EntryKind, RecordingEntry

_GRACE = 0.1  # wall seconds for events that are on their way, or gather in a busy watch
_MAX_DELETED = 20_000  # uids of deleted objects to remember; a read that takes long still knows them
_MAX_READS = 1000  # that wait for a bookmark
_LAST = "9" * 20  # a resourceVersion; real ones have 64 bits
_OLD_READS = 3  # in a row, after which a server that answers with an old state is ruled out
# kube-apiserver has no watch cache for Events, so no bookmarks. An Event outlives the time between two consistent
# reads: it is deleted only when its hour is over, or with its namespace.
LISTED_ONLY = frozenset({"events"})
Key = tuple[str, str]  # namespace, name


class KnownVersions:
    """The newest emitted version of each object of a resource, by uid, and the uids whose deletion was emitted.

    Written by the thread of the watch, and read by those that prove its currency.
    """

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}
        self._deleted: dict[str, str] = {}  # the resourceVersions of the deletions, where known

    def __len__(self) -> int:
        return len(self.versions)

    def update(self, uid: str, version: str) -> None:
        self.versions[uid] = version

    def delete(self, uid: str, version: str = "") -> None:
        self._deleted[uid] = version
        self.versions.pop(uid, None)
        if len(self._deleted) > _MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]

    def is_deleted(self, uid: str) -> bool:
        """Whether the deletion was emitted; a uid never comes back."""
        return uid in self._deleted

    def has(self, uid: str) -> bool:
        """Whether anything about the object was emitted."""
        return uid in self.versions or uid in self._deleted

    def has_delivered(self, replay: EventReplay) -> bool:
        """Whether all that the replay sent was emitted as well."""
        return all(self._has_version(uid, version) for uid, version in replay.objects.items())

    def _has_version(self, uid: str, version: str | None) -> bool:
        known = self.versions.get(uid)
        if uid in self._deleted or known is None or version is None:
            return uid in self._deleted
        return has_reached(known, version)

    def behind(self, read: ConsistentRead) -> list[str]:
        """The UIDs of the objects for which ``read`` has newer data than was emitted, including deletions.

        And of those that it has in an older state than it would, if all of what was emitted had happened to them.
        """
        versions = dict(self.versions)
        differing = (uid for uid, version in read.objects.items() if versions.get(uid) != version)
        late = [uid for uid in differing if not is_newer(versions.get(uid) or self._deletion(uid), read.version)]
        gone = (uid for uid in versions if uid not in read.objects)
        late += [uid for uid in gone if uid in self.versions and not is_newer(versions[uid], read.version)]
        return late

    def _deletion(self, uid: str) -> str:
        """The resourceVersion of the deletion if it was emitted; higher than all others if it is unknown."""
        return (self._deleted[uid] or _LAST) if uid in self._deleted else ""


def different(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The uids that are on one side only, or do not certainly have the same version on both."""
    return [uid for uid in {**before, **after} if not before.get(uid) or before[uid] != after.get(uid)]


def has_reached(known: str, version: str) -> bool:
    """Whether ``known`` is ``version`` or a later one of the same object."""
    return known == version or is_newer(known, version)


def is_newer(known: str, version: str) -> bool:
    """Whether ``known`` is certainly later: resourceVersions of one resource are comparable if they are numbers."""
    before, after = version_number(version), version_number(known)
    return before is not None and after is not None and after > before


class CurrencyProof:
    """How current one watch is, recorded with each proof. ``known``: what the watch has emitted.

    ``until``: everything that happened up to then was emitted, except versions of the objects ``behind``, each of
    which is current up to an earlier moment, and objects that no list has. ``complete_until``: everything, without
    exception. ``complete_version``: the resourceVersion up to which everything was emitted.
    """

    def __init__(self, source: str, clock: Clock, sink: Sink, known: KnownVersions) -> None:
        self._source, self._clock, self._sink, self._known = source, clock, sink, known
        self._lock = threading.Lock()
        self._reads: deque[tuple[int, float]] = deque(maxlen=_MAX_READS)  # resourceVersion and begin
        self._replay: EventReplay | None = None  # not yet emitted
        self._old_reads = 0  # in a row
        self._reached = float("-inf")  # until when bookmarks and replays state that everything was emitted
        self.until, self.complete_until = float("-inf"), 0.0
        self.behind: dict[str, float] = {}
        self.complete_version = ""

    @property
    def has_bookmarks(self) -> bool:
        return self._source not in LISTED_ONLY

    @property
    def listed_until(self) -> float:
        """The moment up to which the versions of all objects in a list were emitted."""
        with self._lock:
            return min(self.behind.values(), default=self.until)

    def restart(self, read: ConsistentRead) -> None:
        """Record that everything of a list was emitted, and nothing from before it will be."""
        with self._lock:
            if is_newer(self.complete_version, read.version):
                self._old_reads = _OLD_READS
            if self.is_reversed:
                return
            self._reads.clear()
            self._replay, self.complete_version = None, read.version
            self.until = self.complete_until = read.begin
            self._update(read, self._known.behind(read))

    @property
    def is_reversed(self) -> bool:
        """Whether the store has an older state than before, as a restored one: from then on, nothing is proven."""
        return self._old_reads >= _OLD_READS

    def prove(self, read: ConsistentRead, known_version: str = "") -> None:
        """Record how current the watch is, given a consistent read.

        ``known_version``: a resourceVersion of the watch from before it was sent. A read that is older is none.
        """
        if not self._is_new(read.version, known_version):
            return
        if self._known.behind(read):
            self._clock.threads.pause(_GRACE)
        with self._lock:
            if read.begin < self.until:  # overtaken by another; of the order of changes it still says something
                self._record(read.version, read.begin)
                return
            gone = (uid for uid in self.behind if uid not in read.objects and not self._known.has(uid))
            self._update(read, [*self._known.behind(read), *gone])

    def note_version(self, version: str, begin: float, known_version: str = "") -> None:
        """Record that the collection had the resourceVersion ``version`` at ``begin`` or later."""
        if self._is_new(version, known_version):
            with self._lock:
                self._record(version, begin)

    def reach(self, version: str) -> None:
        """Everything up to a resourceVersion was emitted, as a bookmark of the watch states."""
        with self._lock:
            if is_newer(version, self.complete_version):
                self.complete_version = version

    def expect(self, replay: EventReplay) -> None:
        """Once all of ``replay`` is emitted, the watch is complete up to its resourceVersion."""
        with self._lock:
            if is_newer(replay.version, self.complete_version):
                self._replay = replay

    def _is_new(self, version: str, known_version: str) -> bool:
        """Whether a read has a state that is not older than the state that was known when it was sent."""
        is_old = is_newer(known_version, version)
        with self._lock:
            if not self.is_reversed:
                self._old_reads = self._old_reads + 1 if is_old else 0
            return not is_old and not self.is_reversed

    def _update(self, read: ConsistentRead, behind: list[str]) -> None:
        self.behind = {uid: self.behind.get(uid, self.until) for uid in behind}
        self.until = read.begin
        if not self.has_bookmarks:
            self.complete_until = min(self.behind.values(), default=self.until)
            self.complete_version = self.complete_version if behind else read.version
        self._record(read.version, read.begin)

    def _record(self, version: str, begin: float) -> None:
        if (number := version_number(version)) is not None:
            self._reads.append((number, begin))
        if self.has_bookmarks:
            self._complete()
        proof = Currency(self.until, list(self.behind), version, self.complete_until, begin)
        value = msgspec.json.encode(proof)
        self._sink(RecordingEntry(self._clock.now(), EntryKind.CURRENT, self._source, msgspec.Raw(value)))

    def _complete(self) -> None:
        """The reads that are not newer than what was emitted are complete."""
        if self._replay and self._known.has_delivered(self._replay):
            self.complete_version, self._replay = self._replay.version, None
        if (version := version_number(self.complete_version)) is not None:
            self._reached = max([self._reached, *(begin for order, begin in self._reads if order <= version)])
            known_until = min(self.behind.values(), default=self._reached)  # a list knows better than a bookmark
            self.complete_until = max(self.complete_until, min(self._reached, known_until))
            self._reads = deque((read for read in self._reads if read[0] > version), _MAX_READS)


class ObjectStore:
    """Written by one thread. ``kind`` is the plural resource.

    ``known`` has what was emitted, so it is updated after that.
    """

    def __init__(self, kind: str, sink: Sink) -> None:
        self._kind, self._sink = kind, sink
        self._objects: dict[Key, DecodedObject] = {}
        self.known = KnownVersions()

    def get(self, name: str, namespace: str = "") -> DecodedObject | None:
        return self._objects.get((namespace, name))

    def apply_event(self, type_: str, obj: DecodedObject, t: float) -> None:
        """Apply a watch event; a version that is known already is not emitted again."""
        known = self._objects.get(obj.key)
        if type_ != DELETED:
            self._update(type_, obj, known, t)
        elif known is not None and known.metadata.uid == obj.metadata.uid:
            del self._objects[obj.key]
            self._emit(DELETED, obj, t, obj.error)
            self.known.delete(obj.metadata.uid, obj.metadata.resource_version)

    def apply_list_item(self, obj: DecodedObject, t: float) -> None:
        """Apply an object of a list."""
        self._update(LIST, obj, self._objects.get(obj.key), t)

    def delete_missing(self, listed: set[Key], t: float) -> None:
        """Delete what a complete list does not have: the deletion was not observed."""
        for key in [k for k in self._objects if k not in listed]:
            gone = self._objects.pop(key)
            self._emit(DELETED, gone, t, MISSING_AT_RELIST)
            self.known.delete(gone.metadata.uid)

    def _update(self, type_: str, obj: DecodedObject, known: DecodedObject | None, t: float) -> None:
        if self.known.is_deleted(obj.metadata.uid):
            return  # sent again
        if known is not None:
            version = obj.metadata.resource_version
            if known.metadata.uid != obj.metadata.uid:
                self._emit(DELETED, known, t, MISSING_AT_RELIST)
                self.known.delete(known.metadata.uid)
            elif version and has_reached(known.metadata.resource_version, version):
                return  # sent again
        self._objects[obj.key] = obj
        self._emit(type_, obj, t, obj.error)
        self.known.update(obj.metadata.uid, obj.metadata.resource_version)

    def _emit(self, type_: str, obj: DecodedObject, t: float, note: str) -> None:
        entry = obj.entry(t, self._kind, type_)
        if note:
            entry.note = note
        self._sink(entry)
