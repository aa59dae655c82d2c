"""Pod garbage collector: pods of deleted nodes, pods on nodes out of service, and surplus terminated pods.

Facts 6 and 11; PGC. One loop every 20 s; no events.
"""

from __future__ import annotations

from collections import Counter

from chaos.lab.apiserver.admission.pods import observed_generation
from chaos.lab.apiserver.index import Key
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change, ConflictError, NotFoundError
from chaos.lab.objects.accessors import (
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
from chaos.lab.sim.clock import SimClock, Timer


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
        self._collect_out_of_service(deleting)
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
            if node is None or condition_status(node, "Ready") == "True":
                continue
            if any(taint["key"] == self._rules.out_of_service_taint for taint in taints_of(node)):
                self._remove(pod, "out-of-service")

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
            obj["status"]["phase"] = "Failed"
            if reason == "orphaned":
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
