"""Disruption controller: the status of PodDisruptionBudgets. Facts 8.2, messages from DIS and recording 08.

Its second part resets stale DisruptionTarget conditions. Facts 8.2 and 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from chaos.lab.apiserver.deletion import budgets_of
from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.pods import observed_generation
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.workload import WorkQueue
from chaos.lab.objects import (
    Object,
    condition,
    controller_of,
    is_deleting,
    is_ready,
    is_terminal,
    name_of,
    namespace_of,
    set_condition,
    uid_of,
)
from chaos.lab.sim import SimClock, seconds_of, transition_time

_PLURALS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


class SyncFailedError(ValueError):
    """The expected number of pods cannot be determined."""


class Disruption:
    """Recomputes a budget's status when the budget or one of its pods changes."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._store, self._rules = sim, registry.store, registry.rules.disruption
        self._recorder = Recorder(sim, registry.store, "controllermanager")
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(sim, self._sync)

    def start(self) -> None:
        self._store.subscribe(self._on_change, "poddisruptionbudgets", "pods")

    def _on_change(self, change: Change) -> None:
        obj, late = change.object, self._rules.recompute_delay
        if change.plural == "poddisruptionbudgets" and change.type != "DELETED":
            self._queue.add((namespace_of(obj), name_of(obj)), late)
        elif change.plural == "pods":
            for budget in budgets_of(self._store, obj, heeds_selectors=self._rules.heeds_selectors):
                self._queue.add((namespace_of(budget), name_of(budget)), late)

    def _sync(self, key: tuple[str, str]) -> None:
        budget = self._store.get("poddisruptionbudgets", *key)
        if budget is None:
            return
        selector = budget["spec"].get("selector")
        pods = self._store.pods_matching(key[0], selector if self._rules.heeds_selectors else {})
        if not pods:
            self._recorder.emit("PodDisruptionBudget", budget, "NoPods", "No matching pods found")
        try:
            scale = self._expected_scale(budget, pods) if self._rules.expects_scale else len(pods)
            expected, desired = expected_pod_counts(self._spec(budget), len(pods), scale, self._rules.round_percentage)
        except SyncFailedError as error:
            self._fail(budget, str(error))
            return
        disrupted = self._disrupted_pods(budget, pods)
        healthy = sum(self._is_healthy(pod) and name_of(pod) not in disrupted for pod in pods)
        status: Object = {
            "observedGeneration": budget["metadata"]["generation"],
            "disruptionsAllowed": max(0, healthy - desired + self._rules.extra_disruptions) if expected > 0 else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        sufficient, insufficient = self._rules.disruption_allowed_reasons
        reason = sufficient if status["disruptionsAllowed"] > 0 else insufficient
        self._write(budget, status, reason, "")

    def _spec(self, budget: Object) -> Object:
        spec: Object = budget["spec"]
        if self._rules.reads_percentages:
            return spec
        return {key: int(value[:-1]) if isinstance(value, str) else value for key, value in spec.items()}

    def _is_healthy(self, pod: Object) -> bool:
        ready = is_ready(pod) or self._rules.counts_unready
        return ready and (not is_deleting(pod) or self._rules.counts_terminating)

    def _fail(self, budget: Object, cause: str) -> None:
        """Fail safe: allow no disruption, and leave the rest of the status."""
        text = f"Failed to calculate the number of expected pods: {cause}"
        self._recorder.emit("PodDisruptionBudget", budget, "CalculateExpectedPodCountFailed", text, type_="Warning")
        unchanged = {key: value for key, value in budget["status"].items() if key != "conditions"}
        observed = {"observedGeneration": budget["metadata"]["generation"]}
        self._write(budget, {**unchanged, **observed, "disruptionsAllowed": 0}, "SyncFailed", cause)

    def _write(self, budget: Object, status: Object, reason: str, message: str) -> None:
        now = self._sim.timestamp()
        item = {"type": "DisruptionAllowed", "status": str(status["disruptionsAllowed"] > 0), "reason": reason}
        item |= {"message": message, "observedGeneration": status["observedGeneration"]}

        def change(obj: Object) -> None:
            obj["status"] = {**status, "conditions": obj["status"].get("conditions") or []}
            set_condition(obj, item, now)

        self._store.patch("poddisruptionbudgets", namespace_of(budget), name_of(budget), change)

    def _disrupted_pods(self, budget: Object, pods: list[Object]) -> dict[str, str]:
        """Evictions that the API server granted and that have not started. DIS buildDisruptedPodMap."""
        granted = budget["status"].get("disruptedPods") or {}
        key, found = (namespace_of(budget), name_of(budget)), {}
        for pod in pods:
            if is_deleting(pod) or name_of(pod) not in granted:
                continue
            remaining = seconds_of(granted[name_of(pod)]) + self._rules.deletion_timeout - self._sim.now
            if remaining < 0:
                text = f"Pod was expected by PDB {key[0]}/{key[1]} to be deleted but it wasn't"
                self._recorder.emit("Pod", pod, "NotDeleted", text, type_="Warning")
                continue
            found[name_of(pod)] = granted[name_of(pod)]
            self._queue.add_after(key, remaining + 0.001)
        return found

    def _expected_scale(self, budget: Object, pods: list[Object]) -> int:
        """Sum of spec.replicas of the pods' controllers. Raises SyncFailedError. DIS getExpectedScale."""
        if not _needs_scale(budget["spec"]):
            return 0
        owners: dict[str, int] = {}
        done = set()
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                text = _UNMANAGED.format(budget["spec"].get("selector"))
                self._recorder.emit("PodDisruptionBudget", budget, "UnmanagedPods", text, type_="Warning")
                continue
            if (controller := (reference["kind"], reference["name"])) in done:
                continue
            done.add(controller)
            owner = self._scale_target(namespace_of(pod), reference)
            if owner is not None:
                owners[uid_of(owner)] = owner["spec"]["replicas"]
        return sum(owners.values())

    def _scale_target(self, namespace: str, reference: Object) -> Object | None:
        """Scaled object of a controlled pod: for a Deployment's ReplicaSet the Deployment. Raises SyncFailedError."""
        plural = _PLURALS.get(reference["kind"])
        if plural is None:
            kind = reference["kind"].lower()
            group = reference["apiVersion"].partition("/")[0]
            raise SyncFailedError(f"{kind}s.{group} does not implement the scale subresource")
        owner = self._store.get(plural, namespace, reference["name"])
        above = controller_of(owner) if owner is not None and self._rules.finds_deployments else None
        return self._store.get("deployments", namespace, above["name"]) if above is not None else owner


def _needs_scale(spec: Object) -> bool:
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def expected_pod_counts(
    spec: Object, pods: int, scales: int, round_percentage: Callable[[float], int] = math.ceil
) -> tuple[int, int]:
    """Number of expected pods and of desired healthy ones; percentages round up."""
    if spec.get("maxUnavailable") is not None:
        return scales, max(0, scales - _number(spec["maxUnavailable"], scales, round_percentage))
    minimum = spec.get("minAvailable", 1)
    if isinstance(minimum, int):
        return pods, minimum
    return scales, _number(minimum, scales, round_percentage)


def _number(value: int | str, total: int, round_percentage: Callable[[float], int]) -> int:
    return value if isinstance(value, int) else round_percentage(int(value.removesuffix("%")) * total / 100)


class StaleDisruption:
    """Resets a condition 2 min after it became True, except those of the kubelet."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._store, self._spec = sim, registry.store, registry.spec
        self._rules = registry.rules.disruption
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(sim, self._sync)

    def start(self) -> None:
        self._store.subscribe(self._on_change, "pods")

    def _on_change(self, change: Change) -> None:
        if change.type != "DELETED" and self._rules.resets_stale_targets:
            self._schedule_check(change.object)

    def _schedule_check(self, pod: Object) -> None:
        target = _stale_candidate(pod)
        if target is not None:
            remaining = self._due_time(target) - self._sim.now
            self._queue.add_after((namespace_of(pod), name_of(pod)), max(remaining, 0.01))

    def _due_time(self, target: Object) -> float:
        return transition_time(target) + self._rules.stale_pod_disruption_timeout

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
