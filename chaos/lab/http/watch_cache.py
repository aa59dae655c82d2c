"""Watch cache: the latest changes of one resource."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable
from typing import Any, Protocol

import msgspec

from chaos.lab.apiserver.store import Change
from chaos.lab.http.errors import ApiError
from chaos.lab.objects.accessors import Object

_EVENT_FRESH_DURATION = 75.0  # simulated seconds; DefaultEventFreshDuration of k8s.io/apiserver/pkg/storage/cacher
_MIN_CAPACITY = 100  # changes; defaultLowerBoundCapacity


class WatchRepresentation(Hashable, Protocol):
    """Representation of objects for a watcher. Equal representations share encoded frames."""

    def show(self, obj: Object) -> dict[str, Any]:
        """Representation of a stored object."""


def event_frame(type_: str, obj: Any) -> bytes:
    """Encode a watch event as one chunk of HTTP/1.1."""
    line = msgspec.json.encode({"type": type_, "object": obj}) + b"\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


def change_frame(change: Change, type_: str, representation: WatchRepresentation) -> bytes:
    """Encode a change; an object that left the selection is sent in its previous state, with the new version."""
    obj = change.object
    if type_ == "DELETED" and change.type != "DELETED" and change.before is not None:
        obj = {**change.before, "metadata": {**change.before["metadata"], "resourceVersion": str(change.version)}}
    return event_frame(type_, representation.show(obj))


class WatchCache:
    """Ring buffer that grows and shrinks as in k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go.

    Its maximum capacity is far below the 102,400 of Kubernetes, as objects are larger here.
    """

    def __init__(self, max_capacity: int) -> None:
        self._max_capacity, self._min_capacity = max_capacity, min(max_capacity, _MIN_CAPACITY)
        self._capacity = self._min_capacity
        self._ring: deque[Change] = deque()
        self._oldest = 0  # oldest version from which a watch can continue

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, change: Change) -> None:
        if len(self._ring) >= self._capacity:
            self._resize(change.at)
            while len(self._ring) >= self._capacity:
                self._ring.popleft()
                self._oldest = (self._ring[0] if self._ring else change).version - 1
        self._ring.append(change)

    def changes_since(self, version: int) -> list[Change]:
        """Changes after ``version``. Raises ApiError 410 if some were dropped."""
        if version < self._oldest:
            raise ApiError(410, f"too old resource version: {version} ({self._oldest})")
        changes = list(self._ring)
        return changes[bisect_right(changes, version, key=lambda change: change.version) :]

    def compact(self, version: int) -> None:
        """Drop all changes up to ``version``."""
        self._ring.clear()
        self._oldest = version

    def _resize(self, now: float) -> None:
        """Double a full ring whose changes are all fresh; halve it if a quarter would suffice."""
        if now - self._ring[0].at < _EVENT_FRESH_DURATION:
            self._capacity = min(self._capacity * 2, self._max_capacity)
        elif now - self._ring[-(self._capacity // 4) or -1].at > _EVENT_FRESH_DURATION:
            self._capacity = max(self._capacity // 2, self._min_capacity)
