"""Events: how components write them, and when they expire.

Event recorder, as in client-go: an equal event increments the count of the first.
Expiry of events an hour after their last write: kube-apiserver --event-ttl, with shared etcd leases.
k8s.io/apiserver pkg/storage/etcd3/lease_manager.go: a lease lasts a minute longer, is reused during that minute,
and is attached to at most 1,000 objects.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from chaos.lab.apiserver.index import Key
from chaos.lab.apiserver.store import Change, Store
from chaos.lab.objects import Object, is_deleting
from chaos.lab.sim import SimClock

_VERSIONS = dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), "apps/v1")
_VERSIONS |= {"PodDisruptionBudget": "policy/v1", "Job": "batch/v1"}
_MAX_CORRELATED = 4096  # client-go events_cache.go maxLruCacheEntries
_DELAY = (0.002, 0.03)  # events are sent by a separate goroutine; seen in the recordings


class _Key(NamedTuple):
    """The key that equal events share; ``namespace``, ``name`` and ``uid`` of the involved object."""

    kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    type: str


class _Event:
    """A new event."""

    __slots__ = ("_key", "_name", "_source", "_timestamp")

    def __init__(self, key: _Key, name: str, timestamp: str, source: dict[str, str]) -> None:
        self._key, self._name, self._timestamp, self._source = key, name, timestamp, source

    def build(self, uid: str, version: int) -> Object:
        """The object in the store."""
        key, now, source = self._key, self._timestamp, self._source
        involved = {"kind": key.kind, "apiVersion": _VERSIONS.get(key.kind, "v1"), "name": key.name, "uid": key.uid}
        if key.namespace:
            involved["namespace"] = key.namespace
        metadata = {"name": self._name, "namespace": key.namespace or "default", "uid": uid}
        return {
            "metadata": metadata | {"creationTimestamp": now, "resourceVersion": str(version)},
            "involvedObject": involved,
            "reason": key.reason,
            "message": key.message,
            "source": source,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": key.type,
            "eventTime": None,
            "reportingComponent": source["component"],
            "reportingInstance": source.get("host", ""),
        }


class Recorder:
    """Writes the events of a component in order; ``host`` is set for kubelets."""

    def __init__(self, sim: SimClock, store: Store, component: str, host: str = "") -> None:
        self._sim, self._store = sim, store
        self._source = {"component": component, "host": host} if host else {"component": component}
        self._names: OrderedDict[_Key, str] = OrderedDict()  # of the latest events
        self._queue: deque[tuple[float, _Key]] = deque()  # with the time of the write
        self._last, self._stamp = 0.0, 0

    def emit(self, kind: str, obj: Object, reason: str, message: str, *, type_: str = "Normal") -> None:
        """Queue an event about an object; a Node needs no uid, as in events of kubelets."""
        meta = obj["metadata"]
        key = _Key(kind, meta.get("namespace") or "", meta["name"], meta.get("uid", ""), reason, message, type_)
        low, high = _DELAY
        self._last = last = max(self._last, self._sim.now + (low + (high - low) * self._sim.rng.random()))
        self._queue.append((last, key))
        if len(self._queue) == 1:
            self._sim.at(last, self._send)

    def _send(self) -> None:
        """Write the first event and set the timer for the next."""
        self._write(self._queue.popleft()[1])
        if self._queue:
            self._sim.at(self._queue[0][0], self._send)

    def _write(self, key: _Key) -> None:
        namespace = key.namespace or "default"
        if (known := self._names.get(key)) is not None:
            self._names.move_to_end(key)
            if self._increment_count(namespace, known):
                return
        home = self._store.get("namespaces", "", namespace)
        if home is None or is_deleting(home):
            return  # the API server rejects new objects in a terminating namespace
        name = self._name(key.name, namespace)
        self._names[key] = name
        if len(self._names) > _MAX_CORRELATED:
            self._names.popitem(last=False)
        self._store.defer_event((namespace, name), _Event(key, name, self._sim.timestamp(), self._source))

    def _name(self, about: str, namespace: str) -> str:
        """Name of the object and nanoseconds, one more for each further event at the same simulated time."""
        self._stamp = max(self._stamp + 1, int(self._sim.now * 1e9))
        while self._store.exists("events", (namespace, name := f"{about}.{self._stamp:x}")):
            self._stamp += 1
        return name

    def _increment_count(self, namespace: str, name: str) -> bool:
        def change(event: Object) -> None:
            event["count"] += 1
            event["lastTimestamp"] = self._sim.timestamp()

        return self._store.patch("events", namespace, name, change) is not None


_REUSE, _MAX_ATTACHED = 60.0, 1000


@dataclass(slots=True, eq=False)
class _Lease:
    """An etcd lease. ``attached``: events, also those that were deleted or have moved to another lease."""

    expires: float
    attached: list[Key] = field(default_factory=list)


class EventTtl:
    """Removes expired events."""

    def __init__(self, sim: SimClock, store: Store, event_ttl: float = 3600.0) -> None:
        self._sim, self._store, self._ttl = sim, store, event_ttl
        self._leases: deque[_Lease] = deque()
        self._lease_by_key: dict[Key, _Lease] = {}

    def start(self) -> None:
        self._store.subscribe(self._on_change, "events")

    def _on_change(self, change: Change) -> None:
        if change.type == "DELETED":
            self._lease_by_key.pop(change.key, None)
        else:
            lease = self._current_lease()
            lease.attached.append(change.key)
            self._lease_by_key[change.key] = lease

    def _current_lease(self) -> _Lease:
        last = self._leases[-1] if self._leases else None
        if last is None or self._sim.now + self._ttl >= last.expires or len(last.attached) >= _MAX_ATTACHED:
            last = _Lease(self._sim.now + self._ttl + _REUSE)
            self._leases.append(last)
            self._sim.at(last.expires, self._expire)
        return last

    def _expire(self) -> None:
        lease = self._leases.popleft()
        for key in sorted({key for key in lease.attached if self._lease_by_key.get(key) is lease}):
            self._store.remove("events", *key)
