"""Pod admission of the kubelet, preemption for critical pods, and the eviction manager. Facts 1.6, 9, 12.

pkg/kubelet/kubelet.go NewMainKubelet (the order), pkg/kubelet/lifecycle/predicate.go (reasons and messages).
pkg/kubelet/preemption/preemption.go (pure). pkg/kubelet/eviction: pressure conditions, one pod per round; the resource
is used outside of Kubernetes (``Machine.pressure``), so evictions continue as long as it is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from chaos.lab.apiserver.admission import qos_class
from chaos.lab.apiserver.deletion import is_protected
from chaos.lab.apiserver.pods import untolerated
from chaos.lab.node.kubelet.pod_worker import CAPACITY, ResourceRequests, Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.objects import (
    MEMORY_PRESSURE,
    Object,
    condition_status,
    matches_node,
    parse_quantity,
    requests_of,
    taints_of,
)
from chaos.lab.rules import NodePressureRules
from chaos.lab.sim import Timer

_RESOURCES = ("pods", "cpu", "memory")
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_TAINTS = "node(s) had taints that the pod didn't tolerate"


@dataclass(frozen=True, slots=True)
class AdmitResult:
    """Result of an admission: with an empty ``reason`` the pod is admitted once the ``victims`` have ended."""

    reason: str = ""
    message: str = ""
    victims: tuple[Worker, ...] = ()


class Admission:
    """Admission handlers. NoSchedule taints and spec.unschedulable have no effect."""

    def __init__(self, process: Process, pressure: Pressure) -> None:
        self._process, self._pressure, self._rules = process, pressure, process.rules.pods
        capacity = CAPACITY | process.machine.spec.capacity
        self._allocatable = {
            "pods": int(capacity["pods"]),
            "cpu": int(parse_quantity(capacity["cpu"]) * 1000),
            "memory": int(parse_quantity(capacity["memory"])),
        }

    def admit(self, worker: Worker, others: list[Worker]) -> AdmitResult:
        """Evaluate a pod. ``others``: all other pods that have not ended."""
        if message := self._pressure.refusal(worker):
            return AdmitResult(self._process.rules.node_pressure.evicted_reason, message)
        result = self._predicates(worker, others)
        if not result.reason and self._process.is_shutting_down and self._rules.rejects_in_shutdown:
            return AdmitResult(*self._rules.shutdown_rejection)
        return result

    def _predicates(self, worker: Worker, others: list[Worker]) -> AdmitResult:
        """Check resources first; a critical pod is rejected only if preemption cannot help."""
        used, requests = _usage(others), worker_requests(worker)
        lacking = {name: amount - (self._allocatable[name] - used[name]) for name, amount in requests.items() if amount}
        lacking = {name: amount for name, amount in lacking.items() if amount > 0}
        mismatch = self._mismatch(worker)
        if not lacking or (mismatch.reason and worker.is_critical):
            return mismatch
        if worker.is_critical:
            return _preempt(worker, others, lacking)
        name = next(iter(lacking))
        text = f"Node didn't have enough resource: {name}, requested: {requests[name]}, used: {used[name]}"
        return AdmitResult(f"OutOf{name}", f"{text}, capacity: {self._allocatable[name]}")

    def _mismatch(self, worker: Worker) -> AdmitResult:
        node = self._process.registry.store.get("nodes", "", self._process.node)
        if node is None:
            return AdmitResult()
        if self._rules.rejects_mismatch and not matches_node(worker.pod, node):
            return AdmitResult("NodeAffinity", f"Predicate NodeAffinity failed: {_AFFINITY}")
        tolerations = self._process.rules.tolerations
        checks_taints = self._rules.rejects_untolerated and not worker.is_static
        if checks_taints and untolerated(worker.pod, taints_of(node), ("NoExecute",), tolerations):
            return AdmitResult("TaintToleration", f"Predicate TaintToleration failed: {_TAINTS}")
        return AdmitResult()


def _usage(workers: list[Worker]) -> ResourceRequests:
    requests = [worker_requests(worker) for worker in workers]
    return {name: sum([amounts[name] for amounts in requests]) for name in _RESOURCES}


def _preempt(worker: Worker, others: list[Worker], needs: ResourceRequests) -> AdmitResult:
    try:
        return AdmitResult(victims=tuple(victims(worker, others, needs)))
    except NoVictimsError as error:
        text = f"preemption: error finding a set of pods to preempt: {error}"
        return AdmitResult(
            "UnexpectedAdmissionError", f"Unexpected error while attempting to recover from admission failure: {text}"
        )


class NoVictimsError(RuntimeError):
    """Preemption of all preemptable pods would not free enough resources."""


def victims(critical: Worker, others: Iterable[Worker], needs: ResourceRequests) -> list[Worker]:
    """The fewest and smallest pods that free the resources, Guaranteed ones last. Raises NoVictimsError."""
    classes: dict[str, list[Worker]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for other in others:
        if _is_preemptable(critical, other):
            classes[qos_class(other.pod["spec"]["containers"])].append(other)
    best_effort, burstable, guaranteed = classes.values()
    if lacking := _subtract(needs, [*best_effort, *burstable, *guaranteed]):
        text = "".join(f"(res: {resource}, q: {amount}), " for resource, amount in lacking.items())
        raise NoVictimsError(f"no set of running pods found to reclaim resources: [{text}]")
    top = _select_by_distance(guaranteed, _subtract(needs, [*best_effort, *burstable]))
    middle = _select_by_distance(burstable, _subtract(needs, [*best_effort, *top]))
    return [*_select_by_distance(best_effort, _subtract(needs, [*middle, *top])), *middle, *top]


def worker_requests(worker: Worker) -> ResourceRequests:
    """Resource requests of a pod, in the order of the kubelet's checks; cached, as they are immutable."""
    if not worker.requests:
        worker.requests = {"pods": 1, **requests_of(worker.pod)}
    return worker.requests


def _is_preemptable(critical: Worker, other: Worker) -> bool:
    if not other.is_critical:
        return True
    priorities = critical.pod["spec"].get("priority"), other.pod["spec"].get("priority")
    return None not in priorities and bool(priorities[0] > priorities[1])


def _subtract(needs: ResourceRequests, pods: list[Worker]) -> ResourceRequests:
    """Needs that remain without these pods."""
    remaining = {
        resource: amount - sum(worker_requests(item)[resource] for item in pods) for resource, amount in needs.items()
    }
    return {resource: amount for resource, amount in remaining.items() if amount > 0}


def _select_by_distance(pods: list[Worker], needs: ResourceRequests) -> list[Worker]:
    """Pods that meet the needs, each the nearest to what remains, and the smallest of equals."""
    remaining, chosen = list(pods), []
    while needs:
        best = min(remaining, key=lambda item: (_distance(needs, item), *_size(item)))
        remaining.remove(best)
        chosen.append(best)
        needs = _subtract(needs, [best])
    return chosen


def _distance(needs: ResourceRequests, worker: Worker) -> float:
    have = worker_requests(worker)
    return sum((max(0, amount - have[resource]) / amount) ** 2 for resource, amount in needs.items())


def _size(worker: Worker) -> tuple[int, int]:
    have = worker_requests(worker)
    return have["memory"], have["cpu"]


_MEMORY_TAINT = {"key": MEMORY_PRESSURE, "effect": "NoSchedule"}


def condition_change_events(before: Object, after: Object, rules: NodePressureRules) -> list[str]:
    """Events of the kubelet for changed pressure conditions, also from Unknown (recording 07).

    The first registration causes no events.
    """
    found = []
    for signal in rules.signals.values():
        status, old = condition_status(after, signal.condition), condition_status(before, signal.condition)
        if old not in ("", status):
            found.append((signal.under_pressure if status == "True" else signal.no_pressure)[2])
    return found


class Evictor(Protocol):
    """Port: the pod workers of the eviction manager."""

    def active_pods(self) -> list[Worker]: ...

    def evict(self, worker: Worker, message: str, disruption: str) -> None: ...


class Pressure:
    """The kubelet's eviction manager. ``rank``: pods with a lower one are evicted first."""

    def __init__(self, process: Process, rank: Callable[[Object], float]) -> None:
        self._process, self._rank, self._rules = process, rank, process.rules.node_pressure
        self._last_observed: dict[str, float] = {}
        self._next: Timer | None = None

    def start(self, workers: Evictor) -> None:
        """Start the rounds, one every 10 s."""
        self._next = self._process.after(self._rules.eviction_monitoring_period, self._round, workers)

    def run_now(self, workers: Evictor) -> None:
        """Make a round now; the next ones follow every 10 s."""
        if self._next is not None:
            self._next.cancel()
        self._round(workers)

    def rephase(self, workers: Evictor) -> None:
        """Make the next round at any time in a period, as if the kubelet had run for long.

        Rounds and node statuses have periods of their own, so that after a while neither comes first (facts 9).
        """
        if self._next is not None:
            self._next.cancel()
        self._next = self._process.after(
            self._process.sim.rng.uniform(0.0, self._rules.eviction_monitoring_period), self._round, workers
        )

    def short_resources(self) -> list[str]:
        """Resources whose condition is True: they were short within the last 5 min."""
        now = self._process.sim.now
        seen, transition = self._last_observed, self._rules.eviction_pressure_transition_period
        return [kind for kind in self._rules.signals if kind in seen and now - seen[kind] < transition]

    def refusal(self, worker: Worker) -> str:
        """Message of a rejection, empty for an admitted pod; memory pressure alone rejects only BestEffort pods."""
        kinds = self.short_resources()
        if not kinds or worker.is_critical:
            return ""
        if kinds == ["memory"] and self._rules.memory_rejects_best_effort_only:
            best_effort = worker.pod["status"].get("qosClass") == "BestEffort"
            tolerations = self._process.rules.tolerations
            if not best_effort or not untolerated(worker.pod, [_MEMORY_TAINT], ("NoSchedule",), tolerations):
                return ""
        return f"The node had condition: [{', '.join(self._rules.signals[kind].condition for kind in kinds)}]. "

    def _round(self, workers: Evictor) -> None:
        short = [kind for kind in self._rules.signals if kind in self._process.machine.pressure]
        self._last_observed |= dict.fromkeys(short, self._process.sim.now)
        active = [worker for worker in workers.active_pods() if not self._is_protected(worker)]
        if short and (worker := victim(active, self._rank, self._rules)) is not None:
            signal = self._rules.signals[short[0]]
            message = (
                f"The node was low on resource: {signal.resource}. "
                f"Threshold quantity: {signal.threshold}, available: 0. "
            )
            workers.evict(worker, message, message)
        self._evict_over_limit(workers)
        self._next = self._process.after(self._rules.eviction_monitoring_period, self._round, workers)

    def _is_protected(self, worker: Worker) -> bool:
        return self._rules.heeds_budgets and is_protected(self._process.registry.store, worker.pod)

    def _evict_over_limit(self, workers: Evictor) -> None:
        """Evict pods that have written more to an emptyDir than its sizeLimit. localStorageEviction."""
        for worker in workers.active_pods():
            if worker.state == "running" and self._process.machine.runtime.exceeds_limit(worker.pod):
                volume = worker.pod["spec"]["volumes"][0]
                limit = volume["emptyDir"]["sizeLimit"]
                message = f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{limit}". '
                workers.evict(worker, message, message if self._rules.limits_are_disruptions else "")


def victim(
    workers: Iterable[Worker], recorded_rank: Callable[[Object], float], rules: NodePressureRules
) -> Worker | None:
    """Pod to evict first: without requests, lowest priority; no critical, static or mirror pod."""
    if not rules.evicts:
        return None
    running = [worker for worker in workers if worker.state == "running"]
    candidates = [worker for worker in running if rules.evicts_critical or not worker.is_critical]
    return min(
        candidates,
        key=lambda worker: (
            recorded_rank(worker.pod),
            rules.qos_order[worker.pod["status"]["qosClass"]],
            worker.priority,
            worker.namespace,
            worker.name,
        ),
        default=None,
    )
