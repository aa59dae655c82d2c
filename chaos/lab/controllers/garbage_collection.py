"""Garbage collector: dependents of a deleted object are deleted or orphaned.

pkg/controller/garbagecollector: with the finalizer orphan they are orphaned, with foregroundDeletion deleted before
their owner, otherwise in the background.
Namespace controller: deletes the objects in a deleted namespace, then the namespace.
Pod garbage collector: pods of deleted nodes, pods on nodes out of service, and surplus terminated pods.
Facts 6 and 11; PGC. One loop every 20 s; no events.
"""

from __future__ import annotations

from collections import Counter

from chaos.lab.apiserver.deletion import FINALIZERS, is_protected
from chaos.lab.apiserver.index import Key
from chaos.lab.apiserver.pods import observed_generation
from chaos.lab.apiserver.registry import CLUSTER_WIDE, Registry, WriteOptions
from chaos.lab.apiserver.store import Change, ConflictError, NotFoundError, clone
from chaos.lab.controllers.workload import WorkQueue
from chaos.lab.objects import (
    Object,
    condition_status,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    set_condition,
    taints_of,
    uid_of,
)
from chaos.lab.sim import SimClock, Timer, seconds_of

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
                elif not is_deleting(item) and not self._is_spared(owned, item):
                    options = WriteOptions(
                        propagation="Foreground" if policy and self._has_dependents(item) else "Background"
                    )
                    self._registry.delete(owned, namespace_of(item), name_of(item), options=options)
        if plural and not self._has_blocking_dependents(owner):
            self._remove_finalizers(plural, obj)

    def _is_spared(self, plural: str, item: Object) -> bool:
        heeds_budgets = self._registry.rules.workloads.collection_heeds_budgets
        return heeds_budgets and plural == "pods" and is_protected(self._store, item)

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


class PodGarbageCollector:
    """``deletions``: attempts by namespace and reason; ``errors``: failed ones. As PGC counts them."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._registry, self._store, self._rules = sim, registry, registry.store, registry.rules.pod_gc
        self._quarantine_ends: dict[str, float] = {}
        self._timer = Timer(0.0, self._loop, ())
        self._terminal_keys: set[Key] = set()  # kept current, as a loop over all pods of a large cluster takes long
        self._deleting_keys: set[Key] = set()
        self.deletions: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()

    def start(self) -> None:
        self._store.subscribe(self._on_change, "pods")
        for pod in self._store.list("pods"):
            self._classify((namespace_of(pod), name_of(pod)), pod)
        self._timer = self._sim.after(self._sim.rng.uniform(0.0, self._rules.gc_check_period), self._loop)

    def _on_change(self, change: Change) -> None:
        if change.type == "DELETED":
            self._terminal_keys.discard(change.key)
            self._deleting_keys.discard(change.key)
        else:
            self._classify(change.key, change.object)

    def _classify(self, key: Key, pod: Object) -> None:
        if is_terminal(pod):
            self._terminal_keys.add(key)
        else:
            self._terminal_keys.discard(key)
        if is_deleting(pod):
            self._deleting_keys.add(key)

    def run_next_at(self, when: float) -> None:
        """Set the time of the next loop."""
        self._timer.cancel()
        self._timer = self._sim.at(when, self._loop)

    def restart(self) -> None:
        """Start a new process: quarantines restart."""
        self._quarantine_ends.clear()
        self.deletions.clear()
        self.errors.clear()

    def _loop(self) -> None:
        """Run all steps on the pods as they are at its start."""
        absent = [name for name in self._store.nodes_with_pods() if self._store.get("nodes", "", name) is None]
        orphans = self._pods(
            {(namespace_of(pod), name_of(pod)) for name in absent for pod in self._store.pods_on(name)}
        )
        deleting, terminal = self._pods(self._deleting_keys), self._pods(self._terminal_keys)
        self._collect_terminated(terminal)
        if self._rules.collects_out_of_service:
            all_ = self._rules.out_of_service_needs_deletion
            self._collect_out_of_service(deleting if all_ else self._store.list("pods"))
        if self._rules.collects_unready:
            self._collect_unready(deleting)
        if self._rules.pod_ttl is not None:
            self._collect_old(self._rules.pod_ttl)
        if self._rules.collects_orphans:
            self._collect_orphans(set(absent), orphans)
        for pod in deleting:
            if not node_of(pod):
                self._remove(pod, "unscheduled")
        self._timer = self._sim.after(self._rules.gc_check_period + self._sim.rng.uniform(0.001, 0.01), self._loop)

    def _pods(self, keys: set[Key]) -> list[Object]:
        """Pods with these keys, in order of key."""
        return [pod for key in sorted(keys) if (pod := self._store.get("pods", *key)) is not None]

    def _collect_terminated(self, finished: list[Object]) -> None:
        """Delete terminated pods beyond the threshold: evicted ones first, then the oldest. 0 disables this."""
        threshold = self._rules.terminated_pod_gc_threshold
        if threshold <= 0 or len(finished) <= threshold:
            return
        finished.sort(key=lambda pod: (pod["status"].get("reason") != "Evicted", *_age(pod)))
        for pod in finished[: len(finished) - threshold]:
            self._remove(pod, "terminated")

    def _collect_out_of_service(self, deleting: list[Object]) -> None:
        for pod in deleting:
            node = self._store.get("nodes", "", node_of(pod)) if node_of(pod) else None
            is_ready = node is not None and condition_status(node, "Ready") == "True"
            if node is None or (is_ready and self._rules.out_of_service_needs_unready):
                continue
            key, effects = self._rules.out_of_service_taint, self._rules.out_of_service_effects
            if any(taint["key"] == key and taint["effect"] in effects for taint in taints_of(node)):
                self._remove(pod, "out-of-service")
                if self._rules.removes_out_of_service_taint:
                    self._store.patch("nodes", "", name_of(node), self._drop_out_of_service)

    def _drop_out_of_service(self, node: Object) -> None:
        node["spec"]["taints"] = [t for t in taints_of(node) if t["key"] != self._rules.out_of_service_taint]

    def _collect_unready(self, deleting: list[Object]) -> None:
        for pod in deleting:
            node = self._store.get("nodes", "", node_of(pod)) if node_of(pod) else None
            if node is not None and condition_status(node, "Ready") != "True":
                self._remove(pod, "unready")

    def _collect_old(self, ttl: float) -> None:
        for pod in self._store.list("pods"):
            if node_of(pod) and self._sim.now - seconds_of(pod["metadata"]["creationTimestamp"]) > ttl:
                self._remove(pod, "old")

    def _collect_orphans(self, absent: set[str], orphans: list[Object]) -> None:
        """Delete pods of nodes that are missing in this loop and were missing 40 s before, whatever was in between.

        ``orphans``: pods of the nodes that are missing. PGC gcOrphaned, discoverDeletedNodes.
        """
        now, quarantine = self._sim.now, self._rules.quarantine_time
        for name in absent:
            self._quarantine_ends.setdefault(name, now + quarantine)
        expired = {name for name, end in self._quarantine_ends.items() if end <= now}
        for name in expired:
            del self._quarantine_ends[name]
        for pod in orphans:
            if node_of(pod) in expired:
                self._remove(pod, "orphaned")

    def _remove(self, pod: Object, reason: str) -> None:
        self.deletions[namespace_of(pod), reason] += 1
        if not self._fail_and_delete(pod, reason):
            self.errors[namespace_of(pod), reason] += 1

    def _fail_and_delete(self, pod: Object, reason: str) -> bool:
        """Set phase Failed, for orphans also DisruptionTarget, and delete the pod. False if it does not exist.

        PGC markFailedAndDeletePodWithCondition.
        """
        key, now = (namespace_of(pod), name_of(pod)), self._sim.timestamp()

        def fail(obj: Object) -> None:
            obj["status"]["phase"] = self._rules.terminal_phase
            if reason == "orphaned" and self._rules.adds_disruption_target:
                new: Object = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}
                new |= observed_generation(obj, self._registry.spec)
                reason_text = self._rules.disruption_target_reason
                new |= {"reason": reason_text, "message": self._rules.disruption_target_message}
                set_condition(obj, new, now)

        current = self._store.get("pods", *key)
        if current is None or uid_of(current) != uid_of(pod):
            return False  # deleted by an earlier step of this loop
        if self._rules.sets_failed and not is_terminal(current):
            self._store.patch_status("pods", *key, fail)
        try:
            self._registry.delete("pods", *key, 0, {"uid": uid_of(pod)})
        except (NotFoundError, ConflictError):
            return False
        return True


def _age(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], name_of(pod)
