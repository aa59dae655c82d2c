"""Disruption controller, second part: resets stale DisruptionTarget conditions. Facts 8.2 and 9."""

from __future__ import annotations

from chaos.lab.apiserver.admission.pods import observed_generation
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.workqueue import WorkQueue
from chaos.lab.objects.accessors import (
    Object,
    condition,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    set_condition,
)
from chaos.lab.sim.clock import SimClock, seconds_of

_TIMEOUT = 120.0


class StaleDisruption:
    """Resets a condition 2 min after it became True, except those of the kubelet."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._store, self._spec = sim, registry.store, registry.spec
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(sim, self._sync)

    def start(self) -> None:
        self._store.subscribe(self._on_change, "pods")

    def _on_change(self, change: Change) -> None:
        if change.type != "DELETED":
            self._schedule_check(change.object)

    def _schedule_check(self, pod: Object) -> None:
        target = _stale_candidate(pod)
        if target is not None:
            remaining = self._due_time(target) - self._sim.now
            self._queue.add_after((namespace_of(pod), name_of(pod)), max(remaining, 0.01))

    def _due_time(self, target: Object) -> float:
        return seconds_of(target["lastTransitionTime"]) + _TIMEOUT + self._spec.shift("stale-disruption")

    def _sync(self, key: tuple[str, str]) -> None:
        pod = self._store.get("pods", *key)
        target = _stale_candidate(pod) if pod is not None else None
        if pod is None or target is None:
            return
        if self._due_time(target) > self._sim.now:
            self._schedule_check(pod)  # another pod with the same name
            return
        now = self._sim.timestamp()
        new: Object = {"type": "DisruptionTarget", "status": "False", "lastProbeTime": None}
        new |= observed_generation(pod, self._spec)
        self._store.patch("pods", *key, lambda obj: set_condition(obj, new, now))


def _stale_candidate(pod: Object) -> Object | None:
    """DisruptionTarget of the pod if it can become stale. DIS nonTerminatingPodHasStaleDisruptionCondition."""
    target = condition(pod, "DisruptionTarget")
    if target is None or target["status"] != "True" or target.get("reason") == "TerminationByKubelet":
        return None
    return None if is_deleting(pod) or is_terminal(pod) else target
