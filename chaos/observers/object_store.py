"""The last known state of all objects of one resource; turns lists and events into lines, each change once."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.kube.watch_codec import DecodedObject
from chaos.model.kube import Metadata
from chaos.model.ports import Sink
from chaos.model.recording import DELETED, LIST, MISSING_AT_RELIST, RecordingEntry

Key = tuple[str, str]  # namespace, name


class ObjectStore:
    """Written by one thread. ``kind`` is the plural resource."""

    def __init__(self, kind: str, sink: Sink) -> None:
        self._kind, self._sink = kind, sink
        self._objects: dict[Key, DecodedObject] = {}

    def get(self, name: str, namespace: str = "") -> DecodedObject | None:
        return self._objects.get((namespace, name))

    def apply_event(self, type_: str, found: DecodedObject, t: float) -> None:
        """A watch event; one that was told already is not told again."""
        known = self._objects.get(found.key)
        if type_ != DELETED:
            self._update(type_, found, known, t)
        elif known is not None and known.metadata.uid == found.metadata.uid:
            del self._objects[found.key]
            self._emit(DELETED, found, t, found.error)

    def apply_list_item(self, found: DecodedObject, t: float) -> None:
        """An object of a list."""
        self._update(LIST, found, self._objects.get(found.key), t)

    def delete_missing(self, seen: set[Key], t: float) -> None:
        """A list is complete: what it did not have was deleted unseen."""
        for key in [k for k in self._objects if k not in seen]:
            self._emit(DELETED, self._objects.pop(key), t, MISSING_AT_RELIST)

    def difference(self, survey: Mapping[Key, Metadata]) -> dict[Key, Metadata | None]:
        """What a watch still has to deliver until ``survey`` is reached; None: the object's deletion."""
        missing: dict[Key, Metadata | None] = {
            key: there
            for key, there in survey.items()
            if (here := self._objects.get(key)) is None
            or (here.metadata.uid, here.metadata.resource_version) != (there.uid, there.resource_version)
        }
        return missing | {key: None for key in self._objects if key not in survey}

    def _update(self, type_: str, found: DecodedObject, known: DecodedObject | None, t: float) -> None:
        if known is not None:
            version = found.metadata.resource_version
            if known.metadata.uid != found.metadata.uid:
                self._emit(DELETED, known, t, MISSING_AT_RELIST)
            elif version and known.metadata.resource_version == version:
                return
        self._objects[found.key] = found
        self._emit(type_, found, t, found.error)

    def _emit(self, type_: str, found: DecodedObject, t: float, note: str) -> None:
        line = RecordingEntry(t, self._kind, type_, found.encode())
        if note:
            line.note = note
        self._sink(line)
