"""The eviction subresource: POST pods/<name>/eviction. Facts 8.1."""

from __future__ import annotations

from chaos.lab.apiserver.deletion import EvictionRefused, budgets_of, check_preconditions, is_protected
from chaos.lab.apiserver.registry import ForbiddenError, Registry
from chaos.lab.apiserver.store import NotFoundError, clone
from chaos.lab.objects import (
    Object,
    condition_status,
    is_deleting,
    is_ready,
    labels_of,
    name_of,
    set_condition,
    uid_of,
)
from chaos.lab.rules.control_plane import EvictionApiRules
from chaos.lab.sim import SimClock

ATTEMPTS = 20


class BudgetBusy(EvictionRefused):
    """Conflict on a budget's last disruption, which the API server itself retries after ``retry_delay`` seconds.

    After :data:`ATTEMPTS` it responds with this error, a 504. Recording 08: the retry comes 0.5 s later.
    """

    def __init__(self, name: str, retry_delay: float, retry_after: int) -> None:
        super().__init__(
            504, f'couldn\'t update PodDisruptionBudget "{name}" due to conflicts', retry_after=retry_after
        )
        self.retry_delay = retry_delay


class Evictions:
    """Decrements budgets, sets DisruptionTarget and deletes pods."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._registry, self._store = sim, registry, registry.store
        self._rules = registry.rules.eviction_api
        self._last_decrements: dict[str, float] = {}
        self._refused: set[str] = set()

    def evict(self, namespace: str, name: str, options: Object | None = None, dry_run: bool = False) -> None:
        """Evict a pod with DeleteOptions. Raises EvictionRefused, NotFoundError, ForbiddenError, ConflictError."""
        pod = self._store.get("pods", namespace, name)
        if pod is None:
            raise NotFoundError("pods", name)
        options = options or {}
        if is_deleting(pod) or pod["status"].get("phase") in self._rules.exempt_phases:
            self._delete(pod, options, dry_run)
            return
        budgets = budgets_of(self._store, pod, heeds_selectors=self._rules.heeds_selectors)
        if len(budgets) > 1 and self._rules.refuses_several_budgets:
            raise EvictionRefused(500, self._rules.multiple_budgets_message)
        checks_budget = budgets and self._rules.checks_budgets
        if checks_budget and (
            is_ready(pod) or not (self._rules.heeds_unhealthy_policy and _can_evict_unhealthy(budgets[0], self._rules))
        ):
            if uid_of(pod) in self._refused and self._rules.refusals_are_final:
                raise EvictionRefused(self._rules.refusal_code, self._rules.refusal_message)
            try:
                self._decrement_budget(pod, budgets[0], dry_run)
            except EvictionRefused:
                self._refused.add(uid_of(pod))
                raise
        self._delete(pod, options, dry_run)

    def _decrement_budget(self, pod: Object, budget: Object, dry_run: bool) -> None:
        """Take one disruption from the budget. EVI checkAndDecrement."""
        last = self._last_decrements.get(uid_of(budget), float("-inf"))
        if budget["status"]["disruptionsAllowed"] == 0 and self._sim.now - last < self._rules.conflict_window:
            delay = self._rules.conflict_backoff * self._sim.rng.uniform(1.0, 1.1)
            raise BudgetBusy(name_of(budget), delay, self._rules.retry_after_seconds)
        check_budget(budget, self._rules)
        new: Object = clone(budget)
        status = new["status"]
        status["disruptionsAllowed"] -= 1
        now = self._sim.timestamp()
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), name_of(pod): now}
        if status["disruptionsAllowed"] == 0:
            item = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
            set_condition(new, {**item, "observedGeneration": status["observedGeneration"]}, now)
        if not dry_run and self._rules.decrements_budgets:
            self._store.update("poddisruptionbudgets", new)
            self._last_decrements[uid_of(budget)] = self._sim.now

    def _delete(self, pod: Object, options: Object, dry_run: bool) -> None:
        """Set the condition and delete the pod, both before the response. EVI addConditionAndDeletePod."""
        metadata = pod["metadata"]
        check_preconditions(pod, options.get("preconditions") or {})
        if dry_run:
            return
        now, rules = self._sim.timestamp(), self._rules
        target = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}
        target |= {"reason": rules.disruption_target_reason, "message": rules.disruption_target_message}
        key = metadata["namespace"], name_of(pod)
        if rules.adds_disruption_target:
            self._store.patch_status("pods", *key, lambda it: set_condition(it, target, now))
        if rules.deletes:
            self._registry.delete("pods", *key, options.get("gracePeriodSeconds", rules.grace_period_seconds))


def _can_evict_unhealthy(budget: Object, rules: EvictionApiRules) -> bool:
    """Whether eviction of an unready pod does not use the budget: spec.unhealthyPodEvictionPolicy."""
    if budget["spec"].get("unhealthyPodEvictionPolicy", rules.default_unhealthy_policy) == "AlwaysAllow":
        return True
    status = budget["status"]
    return bool(status["currentHealthy"] >= status["desiredHealthy"] > 0)


def check_budget(budget: Object, rules: EvictionApiRules) -> None:
    """Check that the budget allows a disruption. Raises EvictionRefused, ForbiddenError."""
    name, status = name_of(budget), budget["status"]
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        cause = f"The disruption budget {name} is still being processed by the server."
        raise EvictionRefused(429, rules.refusal_message, cause, rules.retry_after_seconds)
    if status["disruptionsAllowed"] < 0:
        raise ForbiddenError("pdb disruptions allowed is negative", "poddisruptionbudget.policy", name)
    if len(status.get("disruptedPods") or {}) > rules.max_disrupted_pods:
        reason = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise ForbiddenError(reason, "poddisruptionbudget.policy", name)
    if status["disruptionsAllowed"] == 0:
        raise EvictionRefused(rules.refusal_code, rules.refusal_message, _cause(budget))


def _cause(budget: Object) -> str:
    name, status = name_of(budget), budget["status"]
    failed = [item for item in status.get("conditions") or [] if item["reason"] == "SyncFailed"]
    if failed and condition_status(budget, "DisruptionAllowed") == "False":
        reason = failed[0]["message"]
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {reason}"
    healthy, desired = status["currentHealthy"], status["desiredHealthy"]
    return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"


def before_deletion(registry: Registry, plural: str, namespace: str, name: str) -> None:
    """Called before a client's DELETE; does nothing unless the rules say otherwise. Raises EvictionRefused."""
    rules, obj = registry.rules.api_server, registry.store.get(plural, namespace, name)
    if obj is None or is_deleting(obj):
        return
    if rules.deletion_heeds_budgets and plural != "namespaces":
        labels = labels_of(obj) if plural == "pods" else _labels_of_pods(obj)
        if is_protected(registry.store, {"metadata": {"namespace": namespace, "labels": labels}}):
            raise EvictionRefused(429, registry.rules.eviction_api.refusal_message)
    if rules.deletion_adds_disruption_target and plural == "pods":
        target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByUser", "message": ""}
        now = registry.sim.timestamp()
        registry.store.patch_status("pods", namespace, name, lambda it: set_condition(it, target, now))


def _labels_of_pods(workload: Object) -> dict[str, str]:
    template: Object = (workload.get("spec") or {}).get("template") or {}
    labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}
    return labels
