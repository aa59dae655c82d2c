"""The scheduler: binds pods by priority and position in the queue, and retries when nodes or pods change."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.pods import add_topology_labels, observed_generation
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.scheduler_affinity import requires_pods
from chaos.lab.controllers.scheduler_plugins import (
    VolumeBinding,
    feasible_nodes,
    fit_error_message,
    order_of,
    refusal,
    score,
)
from chaos.lab.controllers.scheduler_ranking import RankingCache, select_candidate
from chaos.lab.controllers.scheduler_snapshot import KUBERNETES_PREFIX, Key, Snapshot, as_seen
from chaos.lab.controllers.workload import WorkQueue
from chaos.lab.objects import (
    Object,
    is_deleting,
    is_terminal,
    labels_of,
    name_of,
    named_nodes,
    namespace_of,
    node_of,
    set_condition,
    taints_of,
    uid_of,
)
from chaos.lab.rules import SchedulerRules
from chaos.lab.sim import SimClock


class Scheduler:
    """kube-scheduler. Readiness has no effect, only taints and spec.unschedulable.

    The arbitrary choices can be replaced: ``order`` of pending pods with the same priority, and which of the
    feasible nodes to ``pick``, None for the scheduler's own choice; and which pods it ``may_schedule``.
    """

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._registry, self._store, self._rules = sim, registry, registry.store, registry.rules.scheduler
        self._recorder = Recorder(sim, registry.store, "default-scheduler")
        self._queue_times: dict[str, float] = {}  # by uid: when a pod entered the queue, or failed to schedule
        self._pending: set[Key] = set()
        self._nominated_pods: set[Key] = set()  # pending until their victims are gone
        self._attached_pods: set[Key] = set()  # pending, with a required affinity to other pods
        self._dirty_pods: set[Key] = set()  # since the last pass
        self._dirty_nodes: set[str] = set()
        self._snapshot = Snapshot(registry.rules)
        self._rankings = RankingCache(self._snapshot)
        self._volumes = VolumeBinding(registry.store)
        self._queue: WorkQueue[str] = WorkQueue(sim, self._run, 0.003, 0.012)
        self.order: Callable[[Object], float] = lambda _: 0.0
        self.may_schedule: Callable[[Object], bool] = lambda _: True
        self.pick: Callable[[Object, Callable[[str], bool]], str | None] = lambda _pod, _is_feasible: None

    def start(self) -> None:
        self._store.subscribe(self._on_change, "pods", "persistentvolumeclaims", "persistentvolumes", "nodes")
        self._store.subscribe(self._on_namespace_change, "namespaces")

    def retry(self) -> None:
        """Try to schedule the pending pods again."""
        self._queue.add("")

    def _on_change(self, change: Change) -> None:
        if change.plural == "pods":
            self._on_pod_change(change)
            return
        if change.plural == "nodes":
            self._dirty_nodes.add(name_of(change.object))
        retries = change.plural != "nodes" or self._registry.rules.scheduler.retries_on_node_changes
        if change.before is None or (retries and _is_relevant(change)):
            self._queue.add("")

    def _on_namespace_change(self, change: Change) -> None:
        self._snapshot.terms.put_namespace(name_of(change.object), labels_of(change.object))

    def _on_pod_change(self, change: Change) -> None:
        pod, before, key = change.object, change.before, change.key
        bound, deleted = bool(node_of(pod)), change.type == "DELETED"
        new = change.type == "ADDED" and not bound
        freed = deleted or (before is not None and is_terminal(pod) and not is_terminal(before))
        if new:
            self._queue_times[uid_of(pod)] = self._sim.now
        elif bound or deleted:
            self._queue_times.pop(uid_of(pod), None)
        if bound:
            self._dirty_pods.add(key)
        is_pending = not (bound or deleted or is_deleting(pod))
        for keys, belongs in (
            (self._pending, is_pending),
            (self._nominated_pods, is_pending and bool(pod["status"].get("nominatedNodeName"))),
            (self._attached_pods, is_pending and requires_pods(pod)),
        ):
            (keys.add if belongs else keys.discard)(key)
        attracts = bool(self._attached_pods) and bound and (before is None or _differs_to_others(before, pod))
        if new or freed or attracts:
            self._queue.add("")

    def _run(self, _key: str) -> None:
        if not self._pending:
            return
        self._update_snapshot()
        pending = [pod for key in self._pending if (pod := self._store.get("pods", *key)) is not None]
        for pod in sorted(pending, key=self._rank):
            nominated_keys = self._add_nominated_pods(pod)
            self._schedule(_as_seen(pod, self._rules), self._snapshot)
            for key in nominated_keys:
                self._snapshot.drop(key)

    def _add_nominated_pods(self, pod: Object) -> list[Key]:
        """Count nominated pods of at least this priority as if bound: RunFilterPluginsWithNominatedPods. Their keys."""
        added = []
        for key in sorted(self._nominated_pods - {(namespace_of(pod), name_of(pod))}):
            other = self._store.get("pods", *key)
            if other is not None and (other["spec"].get("priority") or 0) >= (pod["spec"].get("priority") or 0):
                node = other["status"]["nominatedNodeName"]
                self._snapshot.put({**other, "spec": {**other["spec"], "nodeName": node}})
                added.append(key)
        return added

    def _update_snapshot(self) -> None:
        for name in self._dirty_nodes:
            node = self._store.get("nodes", "", name)
            if node is None:
                self._snapshot.drop_node(name)
            else:
                self._snapshot.put_node(as_seen(self._with_past_taints(node), self._rules))
        for key in self._dirty_pods:
            pod = self._store.get("pods", *key)
            if pod is None or not node_of(pod) or is_terminal(pod):
                self._snapshot.drop(key)
            else:
                self._snapshot.put(pod)
        self._dirty_nodes.clear()
        self._dirty_pods.clear()

    def _with_past_taints(self, node: Object) -> Object:
        """The node with the taints that the scheduler remembers."""
        if not self._rules.remembers_taints:
            return node
        known = self._snapshot.nodes.get(name_of(node), {})
        now = taints_of(node)
        past = [item for item in taints_of(known) if KUBERNETES_PREFIX not in item["key"] and item not in now]
        return {**node, "spec": {**node["spec"], "taints": [*now, *past]}}

    def _rank(self, pod: Object) -> tuple[int, float, float, str]:
        """Position in the queue, by priority and then by queue time, not by age: PrioritySort. The uid breaks ties."""
        return -pod["spec"].get("priority", 0), self.order(pod), self._queue_times.get(uid_of(pod), 0.0), uid_of(pod)

    def _schedule(self, pod: Object, snapshot: Snapshot) -> None:
        if not self.may_schedule(pod):
            return
        if reason := self._volumes.refusal(pod, len(snapshot.nodes)):
            self._mark_unschedulable(pod, f"0/{len(snapshot.nodes)} nodes are available: {reason}.")
            return
        if self._volumes.is_binding(pod):
            return
        placed = self._volumes.with_affinity(pod)
        best = self._best(placed, snapshot)
        if not best:
            _, rejected = feasible_nodes(pod, snapshot.nodes.values(), snapshot)
            rejected = self._volumes.explain(rejected, len(snapshot.nodes))
            self._mark_unschedulable(pod, fit_error_message(len(snapshot.nodes), rejected))
            self._preempt(pod, snapshot)
            return
        assumed = self._volumes.assumed_node(pod)
        if not self._is_feasible(placed, assumed):
            assumed = ""
        node = assumed or self.pick(pod, lambda name: self._is_feasible(placed, name)) or self._sim.rng.choice(best)
        if self._volumes.select_node(pod, node):
            return  # bound once its claims are
        bound = self._bind(pod, node)
        if bound is not None:
            snapshot.put(bound)

    def _is_feasible(self, pod: Object, name: str) -> bool:
        node = self._snapshot.nodes.get(name)
        return node is not None and not refusal(pod, node, self._snapshot)

    def _best(self, pod: Object, snapshot: Snapshot) -> list[str]:
        """Nodes with the best score, by name."""
        names = named_nodes(pod)
        if names is None:
            return self._rankings.best(pod)
        nodes = [snapshot.nodes[name] for name in sorted(names) if name in snapshot.nodes]
        scores = {name_of(node): score(pod, node, snapshot) for node in feasible_nodes(pod, nodes, snapshot)[0]}
        order = order_of(scores.values())
        first = min(map(order, scores.values()), default=None)
        return [name for name, value in scores.items() if order(value) == first]

    def _bind(self, pod: Object, node: str) -> Object | None:
        def change(obj: Object) -> None:
            obj["spec"] = {**obj["spec"], "nodeName": node}
            if self._registry.spec.has_feature("nomination-cleared"):
                obj["status"].pop("nominatedNodeName", None)
            add_topology_labels(obj, self._store.get("nodes", "", node), self._registry.spec, is_binding=True)
            set_condition(obj, {"type": "PodScheduled", "status": "True", "lastProbeTime": None}, self._sim.timestamp())

        text = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
        self._recorder.emit("Pod", pod, "Scheduled", text)
        return self._store.patch_status("pods", namespace_of(pod), name_of(pod), change)

    def _preempt(self, pod: Object, snapshot: Snapshot) -> None:
        """Delete the victims and nominate the pod for their node; it is pending until they are gone."""
        found = select_candidate(pod, snapshot, self._store.list("poddisruptionbudgets"))
        if found is None or not snapshot.rules.scheduler.preempts:
            return
        node, victims = found
        for victim in victims:
            self._evict(pod, victim, node)
        nominated = {"nominatedNodeName": node}
        self._store.patch("pods", namespace_of(pod), name_of(pod), lambda obj: obj["status"].update(nominated))

    def _evict(self, pod: Object, victim: Object, node: str) -> None:
        key, now = (namespace_of(victim), name_of(victim)), self._sim.timestamp()
        rules = self._registry.rules.scheduler
        new: Object = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}
        new |= observed_generation(victim, self._registry.spec) | {"reason": rules.disruption_target_reason}
        new |= {"message": rules.disruption_target_message}
        if rules.adds_disruption_target:
            self._store.patch("pods", *key, lambda obj: set_condition(obj, new, now))
        self._recorder.emit("Pod", victim, "Preempted", f"Preempted by pod {uid_of(pod)} on node {node}")
        self._registry.delete("pods", *key, None, {"uid": uid_of(victim)})

    def _mark_unschedulable(self, pod: Object, text: str) -> None:
        self._queue_times[uid_of(pod)] = self._sim.now

        def change(obj: Object) -> None:
            new: Object = {"type": "PodScheduled", "status": "False", "lastProbeTime": None}
            new |= observed_generation(obj, self._registry.spec)
            new |= {"reason": "Unschedulable", "message": text}
            set_condition(obj, new, self._sim.timestamp())

        self._store.patch_status("pods", namespace_of(pod), name_of(pod), change)
        self._recorder.emit("Pod", pod, "FailedScheduling", text, type_="Warning")


def _is_relevant(change: Change) -> bool:
    """Whether a change can make a pod fit: of a node, only some."""
    before, after = change.before, change.object
    if change.plural != "nodes" or before is None:
        return True
    is_cordon_change = before["spec"].get("unschedulable") != after["spec"].get("unschedulable")
    return is_cordon_change or taints_of(before) != taints_of(after) or labels_of(before) != labels_of(after)


def _differs_to_others(before: Object, after: Object) -> bool:
    """Whether a bound pod is new to the affinities of others: AssignedPodAdded, AssignedPodUpdated."""
    return not node_of(before) or labels_of(before) != labels_of(after)


def _as_seen(pod: Object, rules: SchedulerRules) -> Object:
    """The pod as the scheduler takes it to be: itself, by the default rules."""
    if rules.compares_selector_values or not pod["spec"].get("nodeSelector"):
        return pod
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeSelector"}
    keys = [{"key": key, "operator": "Exists"} for key in pod["spec"]["nodeSelector"]]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": keys}]}}
    spec["affinity"] = {**(spec.get("affinity") or {}), "nodeAffinity": required}
    return {**pod, "spec": spec}
