"""Expiry of events an hour after their last write: kube-apiserver --event-ttl, with shared etcd leases.

k8s.io/apiserver pkg/storage/etcd3/lease_manager.go: a lease lasts a minute longer, is reused during that minute,
and is attached to at most 1,000 objects.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from chaos.lab.apiserver.store.index import Key
from chaos.lab.apiserver.store.store import Change, Store
from chaos.lab.sim.clock import SimClock

_TTL, _REUSE, _MAX_ATTACHED = 3600.0, 60.0, 1000


@dataclass(slots=True, eq=False)
class _Lease:
    """An etcd lease. ``attached_count`` includes events that have moved to another lease."""

    expires: float
    keys: set[Key] = field(default_factory=set)
    attached_count: int = 0


class EventTtl:
    """Removes expired events."""

    def __init__(self, sim: SimClock, store: Store) -> None:
        self._sim, self._store = sim, store
        self._leases: deque[_Lease] = deque()
        self._lease_by_key: dict[Key, _Lease] = {}

    def start(self) -> None:
        self._store.subscribe(self._on_change, "events")

    def _on_change(self, change: Change) -> None:
        key = change.key
        if (lease := self._lease_by_key.pop(key, None)) is not None:
            lease.keys.discard(key)
        if change.type != "DELETED":
            lease = self._current_lease()
            lease.keys.add(key)
            lease.attached_count += 1
            self._lease_by_key[key] = lease

    def _current_lease(self) -> _Lease:
        last = self._leases[-1] if self._leases else None
        if last is None or self._sim.now + _TTL >= last.expires or last.attached_count >= _MAX_ATTACHED:
            last = _Lease(self._sim.now + _TTL + _REUSE)
            self._leases.append(last)
            self._sim.at(last.expires, self._expire)
        return last

    def _expire(self) -> None:
        for key in sorted(self._leases.popleft().keys):
            self._store.remove("events", *key)
