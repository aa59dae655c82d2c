"""Pod admission of the kubelet: node pressure, resources, affinity, taints, shutdown. Facts 1.6, 9, 12.

pkg/kubelet/kubelet.go NewMainKubelet (the order), pkg/kubelet/lifecycle/predicate.go (reasons and messages).
Preemption in the kubelet for critical pods: pure. pkg/kubelet/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.lab.apiserver.admission import qos_class
from chaos.lab.node.kubelet.node_status import CAPACITY
from chaos.lab.node.kubelet.pod_worker import ResourceRequests, Worker
from chaos.lab.node.kubelet.pressure import Pressure
from chaos.lab.node.kubelet.process import Process
from chaos.lab.objects import matches_node, parse_quantity, requests_of, taints_of, untolerated

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
        if not matches_node(worker.pod, node):
            return AdmitResult("NodeAffinity", f"Predicate NodeAffinity failed: {_AFFINITY}")
        checks_taints = self._rules.rejects_untolerated and not worker.is_static
        if checks_taints and untolerated(worker.pod, taints_of(node), ("NoExecute",)):
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
