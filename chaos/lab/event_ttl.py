"""Events live for an hour after their last write: kube-apiserver --event-ttl, with etcd leases that several share.

k8s.io/apiserver pkg/storage/etcd3/lease_manager.go: a lease lasts a minute longer, is used again meanwhile,
and for 1,000 objects at most.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from chaos.lab.sim import Sim
from chaos.lab.store import Change, Store
from chaos.lab.table import Key

_TTL, _REUSE, _MOST = 3600.0, 60.0, 1000


@dataclass(slots=True, eq=False)
class _Lease:
    """``used`` also counts events that have left it."""

    expires: float
    keys: set[Key] = field(default_factory=set)
    used: int = 0


class EventTtl:
    """Removes what has expired."""

    def __init__(self, sim: Sim, store: Store) -> None:
        self._sim, self._store = sim, store
        self._leases: deque[_Lease] = deque()
        self._of: dict[Key, _Lease] = {}

    def start(self) -> None:
        self._store.subscribe(self._changed, "events")

    def _changed(self, change: Change) -> None:
        key = change.key
        if (lease := self._of.pop(key, None)) is not None:
            lease.keys.discard(key)
        if change.type != "DELETED":
            lease = self._lease()
            lease.keys.add(key)
            lease.used += 1
            self._of[key] = lease

    def _lease(self) -> _Lease:
        last = self._leases[-1] if self._leases else None
        if last is None or self._sim.now + _TTL >= last.expires or last.used >= _MOST:
            last = _Lease(self._sim.now + _TTL + _REUSE)
            self._leases.append(last)
            self._sim.at(last.expires, self._expire)
        return last

    def _expire(self) -> None:
        for key in sorted(self._leases.popleft().keys):
            self._store.remove("events", *key)
