"""Taint eviction controller: a countdown per pod from the handling of a NoExecute taint. Facts 5.6."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.apiserver.deletion import is_protected
from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.pods import DEFAULT, observed_generation, tolerates
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change, ConflictError, NotFoundError
from chaos.lab.controllers.workload import WorkQueue
from chaos.lab.objects import Object, name_of, namespace_of, node_of, set_condition, taints_of, uid_of
from chaos.lab.rules import TolerationRules
from chaos.lab.rules.control_plane import EvictionStep, TaintEvictionRules
from chaos.lab.sim import SimClock, Timer

_PodKey = tuple[str, str, str]  # namespace, name, uid
_RULES = TaintEvictionRules()


@dataclass(slots=True)
class _Pending:
    start: float
    timer: Timer


def toleration_seconds(
    pod: Object,
    taints: list[Object],
    rules: TaintEvictionRules = _RULES,
    tolerating: TolerationRules = DEFAULT,
) -> float | None:
    """Seconds for which the pod tolerates these NoExecute taints, by the first matching tolerations; None for ever."""
    limits = []
    tolerations = (pod["spec"].get("tolerations") or []) if rules.heeds_tolerations else []
    for taint in taints:
        match = next((item for item in tolerations if tolerates(item, taint, tolerating)), None)
        if match is None:
            return 0.0
        if (seconds := match.get("tolerationSeconds", rules.unlimited_toleration_seconds)) is not None:
            limits.append(min(max(0.0, float(seconds)), rules.max_toleration_seconds))
    return rules.min_toleration_time(limits) if limits else None


class TaintEviction:
    """Deletes pods whatever their phase, owner and budgets. ``deletions``: number of deleted pods."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._registry, self._store, self._spec = sim, registry, registry.store, registry.spec
        self._rules, self._tolerations = registry.rules.taint_eviction, registry.rules.tolerations
        self._recorder = Recorder(sim, registry.store, "taint-eviction-controller")
        self._pending: dict[_PodKey, _Pending] = {}
        self._survivors: set[_PodKey] = set()  # of a restart: not cancelled by the untaint that follows
        self.deletions = 0
        self._nodes: WorkQueue[str] = WorkQueue(sim, self._on_node_change, 0.002, 0.01)
        self._pods: WorkQueue[_PodKey] = WorkQueue(sim, self._on_pod_change, 0.002, 0.01)

    def start(self) -> None:
        self._store.subscribe(self._on_change, "nodes", "pods")

    def restart(self) -> None:
        """Start a new process: it handles every taint again, so countdowns restart, without an event."""
        self.deletions = 0
        if not self._rules.restart_forgets_countdowns:
            self._survivors = set(self._pending)
            return
        for pending in self._pending.values():
            pending.timer.cancel()
        self._pending.clear()
        for node in self._store.list("nodes"):
            self._nodes.add(name_of(node))

    def _on_change(self, change: Change) -> None:
        obj = change.object
        if change.plural == "nodes":
            before = change.before
            if before is None or self._taints(before) != self._taints(obj):
                self._nodes.add(name_of(obj))
        elif change.type == "DELETED":
            self._cancel((*change.key, uid_of(obj)), obj)
        elif change.before is None or (
            change.before["spec"] is not obj["spec"] and _differs(change.before["spec"], obj["spec"])
        ):
            self._pods.add((*change.key, uid_of(obj)))

    def _on_node_change(self, name: str) -> None:
        node = self._store.get("nodes", "", name)
        if node is None:
            return  # deleting the Node does not cancel timers
        taints = self._taints(node)
        for pod in self._store.pods_on(name):
            self._process(pod, taints)

    def _on_pod_change(self, key: _PodKey) -> None:
        pod = self._store.get("pods", key[0], key[1])
        if pod is None or uid_of(pod) != key[2] or not node_of(pod):
            return
        node = self._store.get("nodes", "", node_of(pod))
        if node is not None:
            self._process(pod, self._taints(node))

    def _taints(self, node: Object) -> list[Object]:
        return [taint for taint in taints_of(node) if taint["effect"] in self._rules.effects]

    def _process(self, pod: Object, taints: list[Object]) -> None:
        key = (namespace_of(pod), name_of(pod), uid_of(pod))
        limit = toleration_seconds(pod, taints, self._rules, self._tolerations) if taints else None
        if limit is None:
            if key not in self._survivors and self._rules.untaint_cancels:
                self._cancel(key, pod)
            return
        if not self._rules.evicts:
            return
        pending, restarts = self._pending.get(key), self._rules.swap_restarts_countdown
        start = pending.start if pending is not None and limit > 0 and not restarts else self._sim.now
        due = start + max(0.0, limit + self._rules.eviction_delay)
        if pending is not None:
            if pending.timer.due <= due and not restarts:
                return
            pending.timer.cancel()
        self._pending[key] = _Pending(start, self._sim.at(due, self._delete, key))

    def _cancel(self, key: _PodKey, pod: Object) -> None:
        pending = self._pending.pop(key, None)
        if pending is not None:
            pending.timer.cancel()
            message = f"Cancelling deletion of Pod {key[0]}/{key[1]}"
            self._recorder.emit("Pod", pod, "TaintManagerEviction", message)

    def _delete(self, key: _PodKey) -> None:
        del self._pending[key]
        pod = self._store.get("pods", key[0], key[1])
        if pod is None or uid_of(pod) != key[2]:
            return
        if self._rules.heeds_budgets and is_protected(self._store, pod):
            return
        self._recorder.emit("Pod", pod, "TaintManagerEviction", f"Marking for deletion Pod {key[0]}/{key[1]}")
        first, second = self._rules.steps
        self._run(first, key)
        self._sim.after(self._sim.rng.uniform(0.002, 0.015), self._run, second, key)

    def _run(self, step: EvictionStep, key: _PodKey) -> None:
        (self._delete_object if step == "delete" else self._set_condition)(key)

    def _set_condition(self, key: _PodKey) -> None:
        if self._rules.adds_disruption_target:
            self._store.patch_status("pods", key[0], key[1], self._add_disruption_target)

    def _add_disruption_target(self, pod: Object) -> None:
        new = {
            "type": "DisruptionTarget",
            **observed_generation(pod, self._spec),
            "status": "True",
            "lastProbeTime": None,
            "reason": self._rules.disruption_target_reason,
            "message": self._rules.disruption_target_message,
        }
        set_condition(pod, new, self._sim.timestamp())

    def _delete_object(self, key: _PodKey) -> None:
        try:
            self._registry.delete("pods", key[0], key[1], self._rules.grace_period_seconds, {"uid": key[2]})
        except (NotFoundError, ConflictError):
            return  # its kubelet has deleted it
        self.deletions += 1


def _differs(before: Object, after: Object) -> bool:
    """Whether nodeName or tolerations of a pod's spec differ."""
    return any(before.get(key) != after.get(key) for key in ("nodeName", "tolerations"))
