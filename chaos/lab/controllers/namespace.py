"""Namespace controller: deletes the objects in a deleted namespace, then the namespace."""

from __future__ import annotations

from chaos.lab.apiserver.registry import CLUSTER_WIDE, Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.workqueue import WorkQueue
from chaos.lab.objects.accessors import is_deleting, name_of, namespace_of
from chaos.lab.sim.clock import SimClock


class Namespaces:
    """Pods are deleted with their grace period; the namespace is Terminating until it is empty."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._registry, self._store = registry, registry.store
        self._queue: WorkQueue[str] = WorkQueue(sim, self._sync, 0.02, 0.1)

    def start(self) -> None:
        self._store.subscribe(self._on_change, deferred=False)

    def _on_change(self, change: Change) -> None:
        if change.plural == "namespaces" and is_deleting(change.object) and change.type != "DELETED":
            self._queue.add(name_of(change.object))
        elif change.type == "DELETED" and change.plural not in CLUSTER_WIDE:
            namespace = self._store.get("namespaces", "", namespace_of(change.object))
            if namespace is not None and is_deleting(namespace):
                self._queue.add(name_of(namespace))

    def _sync(self, name: str) -> None:
        namespace = self._store.get("namespaces", "", name)
        if namespace is None or not is_deleting(namespace):
            return
        remaining = [(plural, obj) for plural in self._store.plurals() for obj in self._store.list(plural, name)]
        for plural, obj in remaining:
            if not is_deleting(obj) and plural not in CLUSTER_WIDE:
                self._registry.delete(plural, name, name_of(obj))
        if not any(self._store.list(plural, name) for plural in self._store.plurals()):
            self._store.remove("namespaces", "", name)
