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
    """An etcd lease. ``attached``: events, also those that were deleted or have moved to another lease."""

    expires: float
    attached: list[Key] = field(default_factory=list)


class EventTtl:
    """Removes expired events."""

    def __init__(self, sim: SimClock, store: Store) -> None:
        self._sim, self._store = sim, store
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
        if last is None or self._sim.now + _TTL >= last.expires or len(last.attached) >= _MAX_ATTACHED:
            last = _Lease(self._sim.now + _TTL + _REUSE)
            self._leases.append(last)
            self._sim.at(last.expires, self._expire)
        return last

    def _expire(self) -> None:
        lease = self._leases.popleft()
        for key in sorted({key for key in lease.attached if self._lease_by_key.get(key) is lease}):
            self._store.remove("events", *key)
