"""The last known state of all objects of one resource; turns lists and events into lines, each change once."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.model.kube import Metadata
from chaos.model.ports import Sink
from chaos.model.recording import DELETED, LIST, MISSING_AT_RELIST, Line
from chaos.observers.wire import Found

Key = tuple[str, str]  # namespace, name


class Cache:
    """Written by one thread. ``kind`` is the plural resource."""

    def __init__(self, kind: str, sink: Sink) -> None:
        self._kind, self._sink = kind, sink
        self._known: dict[Key, Found] = {}

    def get(self, name: str, namespace: str = "") -> Found | None:
        return self._known.get((namespace, name))

    def event(self, type_: str, found: Found, t: float) -> None:
        """A watch event; one that was told already is not told again."""
        known = self._known.get(found.key)
        if type_ != DELETED:
            self._state(type_, found, known, t)
        elif known is not None and known.metadata.uid == found.metadata.uid:
            del self._known[found.key]
            self._emit(DELETED, found, t, found.bad)

    def listed(self, found: Found, t: float) -> None:
        """An object of a list."""
        self._state(LIST, found, self._known.get(found.key), t)

    def unlisted(self, seen: set[Key], t: float) -> None:
        """A list is complete: what it did not have was deleted unseen."""
        for key in [k for k in self._known if k not in seen]:
            self._emit(DELETED, self._known.pop(key), t, MISSING_AT_RELIST)

    def behind(self, survey: Mapping[Key, Metadata]) -> dict[Key, Metadata | None]:
        """What a watch still has to deliver until ``survey`` is reached; None: the object's deletion."""
        missing: dict[Key, Metadata | None] = {
            key: there
            for key, there in survey.items()
            if (here := self._known.get(key)) is None
            or (here.metadata.uid, here.metadata.resource_version) != (there.uid, there.resource_version)
        }
        return missing | {key: None for key in self._known if key not in survey}

    def _state(self, type_: str, found: Found, known: Found | None, t: float) -> None:
        if known is not None:
            version = found.metadata.resource_version
            if known.metadata.uid != found.metadata.uid:
                self._emit(DELETED, known, t, MISSING_AT_RELIST)
            elif version and known.metadata.resource_version == version:
                return
        self._known[found.key] = found
        self._emit(type_, found, t, found.bad)

    def _emit(self, type_: str, found: Found, t: float, note: str) -> None:
        line = Line(t, self._kind, type_, found.encode())
        if note:
            line.note = note
        self._sink(line)
