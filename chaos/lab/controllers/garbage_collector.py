"""Deletion of what depends on a deleted object, and of what is in a deleted namespace.

Garbage collector: dependents of a deleted object are deleted or orphaned.

pkg/controller/garbagecollector: with the finalizer orphan they are orphaned, with foregroundDeletion deleted before
their owner, otherwise in the background.

Namespace controller: deletes the objects in a deleted namespace, then the namespace.
"""

from __future__ import annotations

from chaos.lab.apiserver.registry import CLUSTER_WIDE, FINALIZERS, Registry, WriteOptions
from chaos.lab.apiserver.store import Change, clone
from chaos.lab.controllers.workload import WorkQueue
from chaos.lab.objects.accessors import Object, is_deleting, name_of, namespace_of, uid_of
from chaos.lab.sim.clock import SimClock

_OWNED_PLURALS = ("replicasets", "controllerrevisions", "pods", "leases", "endpointslices", "persistentvolumeclaims")


class GarbageCollector:
    """Deletes dependents of deleted owners. Objects in the lab have at most one owner."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._registry, self._store = registry, registry.store
        self._queue: WorkQueue[str] = WorkQueue(sim, self._collect, 0.03, 0.15)
        self._pending_owners: dict[str, tuple[str, Object]] = {}  # by uid: owners with a finalizer for their dependents

    def start(self) -> None:
        self._store.subscribe(self._on_change, deferred=False)

    def _on_change(self, change: Change) -> None:
        obj = change.object
        if change.type == "DELETED":
            self._pending_owners.pop(uid_of(obj), None)
            self._queue.add(uid_of(obj))
            for reference in obj["metadata"].get("ownerReferences") or ():
                if reference["uid"] in self._pending_owners:
                    self._queue.add(reference["uid"])
        elif is_deleting(obj) and _policy(obj):
            if uid_of(obj) not in self._pending_owners:
                self._queue.add(uid_of(obj))
            self._pending_owners[uid_of(obj)] = (change.plural, obj)
        elif self._pending_owners:
            self._pending_owners.pop(uid_of(obj), None)

    def _collect(self, owner: str) -> None:
        plural, obj = self._pending_owners.get(owner, ("", {}))
        policy = _policy(obj) if plural else ""
        for owned in _OWNED_PLURALS:
            for item in self._store.list_owned(owned, owner):
                if policy == "Orphan":
                    self._orphan(owned, item, owner)
                elif not is_deleting(item):
                    options = WriteOptions(
                        propagation="Foreground" if policy and self._has_dependents(item) else "Background"
                    )
                    self._registry.delete(owned, namespace_of(item), name_of(item), options=options)
        if plural and not self._has_blocking_dependents(owner):
            self._remove_finalizers(plural, obj)

    def _has_dependents(self, obj: Object) -> bool:
        return any(self._store.list_owned(plural, uid_of(obj)) for plural in _OWNED_PLURALS)

    def _has_blocking_dependents(self, owner: str) -> bool:
        """Whether there are dependents with blockOwnerDeletion."""
        return any(
            reference["uid"] == owner and reference.get("blockOwnerDeletion")
            for plural in _OWNED_PLURALS
            for item in self._store.list_owned(plural, owner)
            for reference in item["metadata"]["ownerReferences"]
        )

    def _orphan(self, plural: str, item: Object, owner: str) -> None:
        def change(obj: Object) -> None:
            rest = [it for it in obj["metadata"]["ownerReferences"] if it["uid"] != owner]
            obj["metadata"]["ownerReferences"] = rest

        self._store.patch(plural, namespace_of(item), name_of(item), change)

    def _remove_finalizers(self, plural: str, obj: Object) -> None:
        """Remove the finalizer; with the last finalizer the object is removed."""
        del self._pending_owners[uid_of(obj)]
        new: Object = clone(obj)
        new["metadata"]["finalizers"] = [it for it in obj["metadata"]["finalizers"] if it not in FINALIZERS.values()]
        self._registry.update(plural, new)


def _policy(obj: Object) -> str:
    """Propagation policy by the object's finalizers: Orphan, Foreground, or empty."""
    finalizers = obj["metadata"].get("finalizers") or ()
    return next((policy for policy, finalizer in FINALIZERS.items() if finalizer in finalizers), "")


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
