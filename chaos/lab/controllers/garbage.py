"""The garbage collector: what the deleted object owned is deleted in the background."""

from __future__ import annotations

from chaos.lab.controllers.queue import Queue
from chaos.lab.objects import is_deleting, name_of, namespace_of, uid_of
from chaos.lab.registry import Registry
from chaos.lab.sim import Sim
from chaos.lab.store import Change

_OWNED = ("replicasets", "pods", "leases", "endpointslices")


class GarbageCollector:
    """Only controlling and node owners exist here, so one owner gone is enough."""

    def __init__(self, sim: Sim, registry: Registry) -> None:
        self._registry, self._store = registry, registry.store
        self._queue: Queue[str] = Queue(sim, self._collect, 0.03, 0.15)

    def start(self) -> None:
        self._store.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._queue.add(uid_of(change.object))

    def _collect(self, owner: str) -> None:
        for plural in _OWNED:
            for obj in self._store.owned(plural, owner):
                if not is_deleting(obj):
                    self._registry.delete(plural, namespace_of(obj), name_of(obj))
