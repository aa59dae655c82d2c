"""Events of watches, and the faults that the lab injects into answers.

Watch cache: the latest changes of one resource.

Faults of API servers, and of proxies before them, that the lab injects on request (apiMisbehaviours).

Streams:

=============== =====================================================================================================
``cut``         The connection of a watch is reset, in the middle of an event.
``torn``        The stream of a watch ends cleanly for HTTP, but in the middle of an event.
``end``         A watch ends cleanly but early, as when an API server restarts.
``end-at-once`` Every watch ends as soon as it starts.
``endless``     timeoutSeconds is ignored: a watch does not end.
``half-open``   A watch stops sending for ever while its connection stays open.
``split``       An event is sent in several chunks, cut anywhere, even inside a character.
``gone``        History is compacted before about every second watch from a version: ERROR event 410.
``gone-http``   The same, with 410 as HTTP status, as of aggregated API servers and proxies.
=============== =====================================================================================================

Answers:

================ ====================================================================================================
``slow-answers`` Every answer takes 1 to 15 s of simulated time, that of /readyz included: a part before the request is
                 handled, as in the queue of a starved server, and the rest after. Watches are in time.
================ ====================================================================================================

Objects in lists and watches (and alone):

================== ==================================================================================================
``line-breaks``    An annotation holds U+0085, U+2028 and U+2029, which JSON need not escape.
``null-lists``     Empty lists and maps are null, and images have ``names: null``, as Go writes nil slices.
``null-bookmarks`` Bookmarks are objects full of null.
``idle-bookmarks`` Bookmarks have the version of the resource's last change, or of up to 10 minutes ago if that is
                   newer: etcd's default is to report its progress that rarely, where kubeadm sets 5 s.
``legacy-events``  Events as from old recorders: ``eventTime: null`` and no reporting controller.
================== ==================================================================================================

Faults of streams are random, about one in 30 events. Several faults may be enabled at once.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from chaos.lab.apiserver.store import Change
from chaos.lab.http.errors import ApiError
from chaos.lab.objects import Object
from chaos.lab.spec import ApiMisbehaviour

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
        self.last_version = 0  # of a change of this resource

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, change: Change) -> None:
        if len(self._ring) >= self._capacity:
            self._resize(change.at)
            while len(self._ring) >= self._capacity:
                self._ring.popleft()
                self._oldest = (self._ring[0] if self._ring else change).version - 1
        self._ring.append(change)
        self.last_version = change.version

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


STREAM_FAULTS: frozenset[ApiMisbehaviour] = frozenset({"cut", "torn", "end", "half-open"})
_FAULT_RATE = 1 / 30  # faults per event of a watch
_SLOW_ANSWER = 1.0, 15.0  # simulated seconds from a request to its answer
_LINE_BREAKS = "one\u0085two\u2028three\u2029four"
_NULL_BOOKMARK: dict[str, Any] = {
    "spec": {"containers": None, "template": {"spec": {"containers": None}}, "taints": None, "selector": None},
    "status": None,
    "involvedObject": {},
    "eventTime": None,
}
_NULL_METADATA = {"creationTimestamp": None, "labels": None, "annotations": None, "managedFields": None}


class FaultInjector:
    """Injects the ``enabled`` faults, which may change while the lab runs.

    A separate random generator keeps faults from changing the simulation.
    """

    def __init__(self, names: Iterable[ApiMisbehaviour] = (), seed: int = 1) -> None:
        self.enabled: set[ApiMisbehaviour] = set(names)
        self.rng = random.Random(seed)  # noqa: S311 - repeatable, not secret

    def should_compact(self) -> bool:
        """Whether to compact the history before a watch continues from a version."""
        return bool(self.enabled & {"gone", "gone-http"}) and self.rng.random() < 0.5

    def next_latency(self) -> tuple[float, float]:
        """Simulated seconds that the next request takes before its effect, and after it."""
        if "slow-answers" not in self.enabled:
            return 0.0, 0.0
        total, share = self.rng.uniform(*_SLOW_ANSWER), self.rng.random()
        return total * share, total * (1 - share)

    def next_fault(self) -> str:
        """Fault of STREAM_FAULTS for the next event of a stream; "" for none."""
        names = sorted(self.enabled & STREAM_FAULTS)
        return self.rng.choice(names) if names and self.rng.random() < _FAULT_RATE else ""

    def split_chunks(self, line: bytes) -> list[bytes]:
        """Chunks in which to send an event."""
        if "split" not in self.enabled:
            return [line]
        cuts = sorted({self.rng.randrange(1, len(line)) for _ in range(3)})
        return [line[start:end] for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True)]

    def corrupt_bookmark(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Bookmark to send, corrupted if enabled."""
        if "null-bookmarks" not in self.enabled or obj["kind"] == "Table":
            return obj
        return {**obj, **_NULL_BOOKMARK, "metadata": _NULL_METADATA | obj["metadata"]}

    def corrupt_body(self, body: Any) -> Any:
        """Body to send: objects and lists of objects are corrupted if enabled."""
        if not self.enabled or not isinstance(body, dict):
            return body
        if isinstance(body.get("items"), list):
            kind = str(body.get("kind", "")).removesuffix("List")
            return {**body, "items": [self.corrupt_object(item, kind) for item in body["items"]]}
        return self.corrupt_object(body, str(body.get("kind", "")))

    def corrupt_object(self, obj: dict[str, Any], kind: str) -> dict[str, Any]:
        """Object to send, corrupted if enabled; a Status or Table is not changed."""
        if not self.enabled or "uid" not in (obj.get("metadata") or {}):
            return obj
        if kind == "Event" and "legacy-events" in self.enabled:
            obj = {**obj, "eventTime": None, "reportingComponent": "", "reportingInstance": ""}
        if "null-lists" in self.enabled:
            obj = _empty_to_null(obj)
            if kind == "Node":
                obj["status"] = {**obj.get("status", {}), "images": [{"names": None, "sizeBytes": 1}]}
        if "line-breaks" in self.enabled:
            metadata = obj["metadata"]
            annotations = (metadata.get("annotations") or {}) | {"example.com/note": _LINE_BREAKS}
            obj = {**obj, "metadata": {**metadata, "annotations": annotations}}
        return obj


@dataclass(frozen=True)
class CorruptedRepresentation:
    """Representation with the enabled faults."""

    inner: WatchRepresentation
    fault_injector: FaultInjector

    def show(self, obj: dict[str, Any]) -> dict[str, Any]:
        result = self.inner.show(obj)
        if "uid" not in obj["metadata"]:
            return self.fault_injector.corrupt_bookmark(result)
        return self.fault_injector.corrupt_object(result, str(result["kind"]))


def _empty_to_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _empty_to_null(item) for key, item in value.items()} or None
    if isinstance(value, list):
        return [_empty_to_null(item) for item in value] or None
    return value
