"""DaemonSet controller: a pod per eligible node, replacement of finished pods, roll-outs. Facts 5.7, 18."""

from __future__ import annotations

from chaos.lab.apiserver.registry import ForbiddenError, Registry
from chaos.lab.apiserver.store import Change, clone
from chaos.lab.controllers.daemon_pods import DaemonPods, EligibilityCache, NodeCounts, max_unavailable, pods_to_replace
from chaos.lab.controllers.workload import LABEL, Revisions, WorkloadController, revision_of
from chaos.lab.objects import (
    Object,
    controller_of,
    is_deleting,
    is_ready,
    is_terminal,
    labels_of,
    matches_node,
    name_of,
    namespace_of,
    taints_of,
    uid_of,
)
from chaos.lab.sim import SimClock


class DaemonSets(WorkloadController):
    plural, kind, owned, component = "daemonsets", "DaemonSet", "pods", "daemonset-controller"

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        super().__init__(sim, registry)
        self._rules = registry.rules.workloads
        self._failures: dict[tuple[str, str], tuple[float, float]] = {}
        self._revisions = Revisions(registry, self.kind)
        self._sets: dict[str, DaemonPods] = {}  # by uid of the owner

    def start(self) -> None:
        super().start()
        self._store.subscribe(self._on_node_change, "nodes")

    def _on_change(self, change: Change) -> None:
        super()._on_change(change)
        if change.type == "DELETED":
            self._sets.pop(uid_of(change.object), None)

    def _on_owned_change(self, change: Change) -> None:
        super()._on_owned_change(change)
        owner = controller_of(change.object)
        if owner is not None and (owned_pods := self._sets.get(owner["uid"])) is not None:
            owned_pods.on_change(change)

    def restart(self) -> None:
        """Start a new process: back-offs are lost."""
        self._failures.clear()

    def record_failures(self, owner: str, node: str, times: list[float]) -> None:
        """Record deletions of failed pods of an owner (uid) on a node at these times, which continue the back-off."""
        delay, (first, longest) = 0.0, self._rules.daemon_backoff
        for before, at in zip([float("-inf"), *times], times, strict=False):
            delay = first if at - before > 2 * longest else min(delay * 2, longest)
        if times:
            self._failures[owner, node] = (times[-1], delay)

    def _on_node_change(self, change: Change) -> None:
        before = change.before
        same = (
            before is not None
            and change.type == "MODIFIED"
            and _scheduling_fields(before) == _scheduling_fields(change.object)
        )
        if not same:
            for owned_pods in self._sets.values():
                owned_pods.stale.add(name_of(change.object))
            for owner in self._store.list(self.plural):
                self._queue.add((namespace_of(owner), name_of(owner)))

    def sync(self, owner: Object) -> None:
        try:
            revision = self._revisions.newest(owner)
        except ForbiddenError:
            return  # the namespace is being terminated
        owned_pods = self._owned_pods(owner, self._prototype(owner, revision))
        evaluated = owned_pods.pop_stale()
        for name in evaluated:
            if (node := self._store.get("nodes", "", name)) is not None and self._sync_node(owner, owned_pods, node):
                owned_pods.stale.add(name)
        self._count_nodes(owner, owned_pods, {*evaluated, *owned_pods.stale})
        if owner["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            self._roll_out(owner, owned_pods, revision_of(owned_pods.eligibility.prototype))
        self._revisions.trim(owner, {name_of(revision), *owned_pods.revisions})
        self._status(owner, owned_pods.total)

    def _owned_pods(self, owner: Object, prototype: Object) -> DaemonPods:
        """Index of the owner's pods; after a change of the owner every node is stale."""
        if uid_of(owner) not in self._sets:
            self._sets[uid_of(owner)] = DaemonPods(self._list_owned(owner))
        owned_pods, generation = self._sets[uid_of(owner)], owner["metadata"]["generation"]
        if owned_pods.generation != generation or owned_pods.eligibility.prototype != prototype:
            owned_pods.eligibility = EligibilityCache(prototype, self._registry.rules.tolerations)
            owned_pods.generation = generation
            owned_pods.stale.update(map(name_of, self._store.list("nodes")))
        return owned_pods

    def _roll_out(self, owner: Object, owned_pods: DaemonPods, newest: str) -> None:
        if not owned_pods.revisions.keys() - {newest}:
            return
        limit = max_unavailable(owner, owned_pods.total.desired)
        for pod in pods_to_replace(owned_pods.by_node(), newest, limit, lambda pod: self._is_available(owner, pod)):
            self._delete_pod(owner, pod)
        self._count_nodes(owner, owned_pods, set(owned_pods.stale))

    def _sync_node(self, owner: Object, owned_pods: DaemonPods, node: Object) -> bool:
        """Create or delete pods on the node. Whether work is left, now or after a back-off. DS podsShouldBeOnNode."""
        fit, prototype, pods = (
            owned_pods.eligibility.of(node),
            owned_pods.eligibility.prototype,
            owned_pods.pods_on(name_of(node)),
        )
        if not pods:
            should_run = fit.should_run or (self._rules.daemons_ignore_taints and matches_node(prototype, node))
            if should_run:
                self._create_pod(owner, _node_pod(prototype, node))
            return should_run
        active = [pod for pod in pods if not is_deleting(pod)]
        if not fit.should_continue_running:
            for pod in active:
                self._delete_pod(owner, pod)
            return bool(active)
        terminal = [pod for pod in active if is_terminal(pod)]
        for pod in terminal:
            self._replace(owner, node, pod)
        return bool(terminal)

    def _replace(self, owner: Object, node: Object, pod: Object) -> None:
        """Delete a finished pod; a failed one after its back-off."""
        where = f"{namespace_of(pod)}/{name_of(pod)} on node {name_of(node)}"
        if pod["status"]["phase"] == "Succeeded":
            text = f"Found succeeded daemon pod {where}, will try to delete it"
            self._recorder.emit(self.kind, owner, "SucceededDaemonPod", text)
        else:
            wait = self._backoff(owner, node)
            if wait > 0:
                self._queue.add_after((namespace_of(owner), name_of(owner)), wait)
                return
            text = f"Found failed daemon pod {where}, will try to kill it"
            self._recorder.emit(self.kind, owner, "FailedDaemonPod", text, type_="Warning")
        self._delete_pod(owner, pod)

    def _backoff(self, owner: Object, node: Object) -> float:
        """Remaining back-off in seconds; 0 doubles the next one. client-go flowcontrol.Backoff, per owner and node."""
        key = (uid_of(owner), name_of(node))
        now = self._sim.now
        at, delay = self._failures.get(key, (0.0, 0.0))
        if delay and now - at < delay:
            return at + delay - now
        first, longest = self._rules.daemon_backoff
        expired = now - at > 2 * longest
        self._failures[key] = (now, first if expired or not delay else min(delay * 2, longest))
        return 0.0

    def _prototype(self, owner: Object, revision: Object) -> Object:
        """Prototype of the owner's pods, with the tolerations of every daemon pod. daemonset_util.go."""
        labels = {LABEL: labels_of(revision)[LABEL], "pod-template-generation": str(revision["revision"])}
        pod = self._new_pod(owner, labels)
        rules = self._rules
        tolerations = pod["spec"].setdefault("tolerations", [])
        if not rules.keeps_own_tolerations:
            tolerations.clear()
        added = rules.daemon_tolerations
        added += rules.host_network_daemon_tolerations if pod["spec"].get("hostNetwork") else ()
        for key, effect in added:
            item: Object = {"key": key, "operator": "Exists", "effect": effect}
            if effect == "NoExecute" and rules.daemon_toleration_seconds is not None:
                item["tolerationSeconds"] = rules.daemon_toleration_seconds
            tolerations.append(item)
        return pod

    def _count_nodes(self, owner: Object, owned_pods: DaemonPods, names: set[str]) -> None:
        """Count the pods of these nodes; a node whose pod is ready but not yet available stays stale."""
        for name in names:
            node = self._store.get("nodes", "", name)
            counts = self._count_node(owner, owned_pods, node) if node is not None else NodeCounts()
            owned_pods.set_counts(name, counts)
            if counts.ready != counts.available:
                owned_pods.stale.add(name)

    def _count_node(self, owner: Object, owned_pods: DaemonPods, node: Object) -> NodeCounts:
        """Count the oldest pod of a node."""
        active = [pod for pod in owned_pods.pods_on(name_of(node)) if not is_deleting(pod)]
        fit, newest = owned_pods.eligibility.of(node), revision_of(owned_pods.eligibility.prototype)
        if not fit.should_run:
            return NodeCounts(misplaced=bool(active) and not fit.should_continue_running)
        return NodeCounts(
            desired=1,
            current=bool(active),
            ready=any(map(is_ready, active)),
            available=any(self._is_available(owner, pod) for pod in active),
            updated=any(revision_of(pod) == newest for pod in active),
        )

    def _status(self, owner: Object, total: NodeCounts) -> None:
        """Write the status. DS updateDaemonSetStatus."""
        status = {
            "currentNumberScheduled": total.current,
            "numberMisscheduled": total.misplaced,
            "desiredNumberScheduled": total.desired,
            "numberReady": total.ready,
        }
        optional = {"updatedNumberScheduled": total.updated, "numberAvailable": total.available}
        optional["numberUnavailable"] = total.desired - total.available
        self._write_status(owner, status | {key: value for key, value in optional.items() if value})


def _node_pod(prototype: Object, node: Object) -> Object:
    pod: Object = clone(prototype)
    field = {"key": "metadata.name", "operator": "In", "values": [name_of(node)]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    pod["spec"]["affinity"] = {**(pod["spec"].get("affinity") or {}), "nodeAffinity": required}
    return pod


def _scheduling_fields(node: Object) -> tuple[object, ...]:
    return taints_of(node), node["metadata"].get("labels"), node["spec"].get("unschedulable")
