"""The status of PodDisruptionBudgets. Facts 8.2; the eviction API itself is not simulated."""

from __future__ import annotations

import math

from chaos.lab.controllers.queue import Queue
from chaos.lab.objects import (
    Object,
    condition,
    controller_of,
    is_deleting,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    selector_matches,
)
from chaos.lab.registry import Registry
from chaos.lab.sim import Sim
from chaos.lab.store import Change

_PLURALS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "Deployment": "deployments"}


class Disruption:
    """Recomputed whenever a budget or one of its pods changes."""

    def __init__(self, sim: Sim, registry: Registry) -> None:
        self._sim, self._store = sim, registry.store
        self._queue: Queue[tuple[str, str]] = Queue(sim, self._sync)

    def start(self) -> None:
        self._store.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        obj = change.object
        if change.plural == "poddisruptionbudgets" and change.type != "DELETED":
            self._queue.add((namespace_of(obj), name_of(obj)))
        elif change.plural == "pods":
            for budget in self._store.list("poddisruptionbudgets", namespace_of(obj)):
                if selector_matches(budget["spec"].get("selector"), labels_of(obj)):
                    self._queue.add((namespace_of(budget), name_of(budget)))

    def _sync(self, key: tuple[str, str]) -> None:
        budget = self._store.get("poddisruptionbudgets", *key)
        if budget is None:
            return
        selector = budget["spec"].get("selector")
        pods = [pod for pod in self._store.list("pods", key[0]) if selector_matches(selector, labels_of(pod))]
        healthy = sum(is_ready(pod) and not is_deleting(pod) for pod in pods)
        expected, desired = needed(budget["spec"], len(pods), self._scales(pods))
        allowed = max(0, healthy - desired) if expected > 0 else 0
        reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
        now, value = self._sim.timestamp(), str(allowed > 0)
        old = condition(budget, "DisruptionAllowed")
        moved = old["lastTransitionTime"] if old is not None and old["status"] == value else now
        new = {"type": "DisruptionAllowed", "status": value, "reason": reason, "message": ""}
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": [{**new, "lastTransitionTime": moved}],
        }
        self._store.patch("poddisruptionbudgets", *key, lambda obj: obj.update(status=status))

    def _scales(self, pods: list[Object]) -> int:
        """The sum of the replicas that the pods' controllers want."""
        owners = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference is not None and reference["kind"] in _PLURALS:
                owners[reference["uid"]] = (_PLURALS[reference["kind"]], namespace_of(pod), reference["name"])
        found = [self._store.get(*owner) for owner in owners.values()]
        return sum(owner["spec"]["replicas"] for owner in found if owner is not None)


def needed(spec: Object, pods: int, scales: int) -> tuple[int, int]:
    """Expected pods and desired healthy ones; percents round up."""
    if spec.get("maxUnavailable") is not None:
        return scales, max(0, scales - _number(spec["maxUnavailable"], scales))
    minimum = spec.get("minAvailable", 1)
    if isinstance(minimum, int):
        return pods, minimum
    return scales, _number(minimum, scales)


def _number(value: int | str, total: int) -> int:
    return value if isinstance(value, int) else math.ceil(int(value.removesuffix("%")) * total / 100)
