"""Object store: the last known state of all objects of one resource. Lists and events become entries, once each."""

from __future__ import annotations

from chaos.cluster.observers.currency import KnownVersions, has_reached
from chaos.cluster.watch_codec import DecodedObject
from chaos.core.ports import Sink
from chaos.core.recording import DELETED, LIST, MISSING_AT_RELIST

Key = tuple[str, str]  # namespace, name


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
