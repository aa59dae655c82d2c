"""The scheduler: binds pods in the order of priority and of the queue, and tries again when nodes or pods change."""

from __future__ import annotations

from chaos.lab.controllers.preemption import choose
from chaos.lab.controllers.queue import Queue
from chaos.lab.controllers.scheduling import Snapshot, feasible, message, score
from chaos.lab.events import Recorder
from chaos.lab.objects import (
    Object,
    is_deleting,
    is_terminal,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    set_condition,
    taints_of,
    uid_of,
)
from chaos.lab.registry import Registry
from chaos.lab.sim import Sim
from chaos.lab.store import Change
from chaos.lab.volumes import unbound


class Scheduler:
    """Never looks at Ready, only at taints and spec.unschedulable."""

    def __init__(self, sim: Sim, registry: Registry) -> None:
        self._sim, self._registry, self._store = sim, registry, registry.store
        self._recorder = Recorder(sim, registry.store, "default-scheduler")
        self._queued: dict[str, float] = {}  # by uid: when a pod came into the queue, or back after a refusal
        self._queue: Queue[str] = Queue(sim, self._run, 0.003, 0.012)

    def start(self) -> None:
        self._store.subscribe(self._changed, "pods", "persistentvolumeclaims", "nodes")

    def _changed(self, change: Change) -> None:
        if change.plural == "pods":
            pod, before = change.object, change.before
            new = change.type == "ADDED" and not node_of(pod)
            freed = change.type == "DELETED" or (before is not None and is_terminal(pod) and not is_terminal(before))
            if new:
                self._queued[uid_of(pod)] = self._sim.now
            elif node_of(pod) or change.type == "DELETED":
                self._queued.pop(uid_of(pod), None)
            if new or freed:
                self._queue.add("")
        elif change.plural != "nodes" or change.before is None or _matters(change.before, change.object):
            self._queue.add("")

    def _run(self, _key: str) -> None:
        waiting = [pod for pod in self._store.list("pods") if not node_of(pod) and not is_deleting(pod)]
        if not waiting:
            return
        placed = [pod for pod in self._store.list("pods") if node_of(pod) and not is_terminal(pod)]
        snapshot = Snapshot(self._store.list("nodes"), placed)
        waiting.sort(key=self._rank)
        for pod in waiting:
            self._schedule(pod, snapshot)

    def _rank(self, pod: Object) -> tuple[int, float, str]:
        """PrioritySort: by priority, then by when it was queued, not by age; the last is as good as any."""
        return -pod["spec"].get("priority", 0), self._queued.get(uid_of(pod), 0.0), uid_of(pod)

    def _schedule(self, pod: Object, snapshot: Snapshot) -> None:
        if why := unbound(self._store, pod):
            self._refuse(pod, f"0/{len(snapshot.nodes)} nodes are available: {why}.")
            return
        fitting, refused = feasible(pod, snapshot)
        if not fitting:
            self._refuse(pod, message(len(snapshot.nodes), refused))
            self._preempt(pod, snapshot)
            return
        scores = {name_of(node): score(pod, node, snapshot) for node in fitting}
        best = min(scores.values())
        node = self._sim.rng.choice([name for name, value in scores.items() if value == best])
        bound = self._bind(pod, node)
        if bound is not None:
            snapshot.assume(bound)

    def _bind(self, pod: Object, node: str) -> Object | None:
        def change(obj: Object) -> None:
            obj["spec"]["nodeName"] = node
            obj["status"].pop("nominatedNodeName", None)
            set_condition(obj, {"type": "PodScheduled", "status": "True", "lastProbeTime": None}, self._sim.timestamp())

        text = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
        self._recorder.emit("Pod", pod, "Scheduled", text)
        return self._store.patch("pods", namespace_of(pod), name_of(pod), change)

    def _preempt(self, pod: Object, snapshot: Snapshot) -> None:
        """Delete the victims with a reason; the pod is nominated for their node and waits until they are gone."""
        found = choose(pod, snapshot, self._store.list("poddisruptionbudgets"))
        if found is None:
            return
        node, victims = found
        for victim in victims:
            self._evict(pod, victim, node)
        nominated = {"nominatedNodeName": node}
        self._store.patch("pods", namespace_of(pod), name_of(pod), lambda obj: obj["status"].update(nominated))

    def _evict(self, pod: Object, victim: Object, node: str) -> None:
        key, now = (namespace_of(victim), name_of(victim)), self._sim.timestamp()
        new = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}
        new |= {"observedGeneration": victim["metadata"].get("generation", 1), "reason": "PreemptionByScheduler"}
        new |= {"message": "default-scheduler: preempting to accommodate a higher priority pod"}
        self._store.patch("pods", *key, lambda obj: set_condition(obj, new, now))
        self._recorder.emit("Pod", victim, "Preempted", f"Preempted by pod {uid_of(pod)} on node {node}")
        self._registry.delete("pods", *key, None, {"uid": uid_of(victim)})

    def _refuse(self, pod: Object, text: str) -> None:
        self._queued[uid_of(pod)] = self._sim.now

        def change(obj: Object) -> None:
            new = {"type": "PodScheduled", "status": "False", "lastProbeTime": None}
            new |= {"observedGeneration": obj["metadata"].get("generation", 1)}
            new |= {"reason": "Unschedulable", "message": text}
            set_condition(obj, new, self._sim.timestamp())

        self._store.patch("pods", namespace_of(pod), name_of(pod), change)
        self._recorder.emit("Pod", pod, "FailedScheduling", text, type_="Warning")


def _matters(before: Object, after: Object) -> bool:
    """Whether a change of the node can make a pod fit."""
    same_spec = taints_of(before) == taints_of(after) and before["spec"].get("unschedulable") == after["spec"].get(
        "unschedulable"
    )
    return not same_spec or labels_of(before) != labels_of(after)
