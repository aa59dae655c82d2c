"""Pod admission of the kubelet: node pressure, resources, affinity, taints, shutdown. Facts 1.6, 9, 12.

pkg/kubelet/kubelet.go NewMainKubelet (the order), pkg/kubelet/lifecycle/predicate.go (reasons and messages).
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.node.kubelet.node_status import CAPACITY
from chaos.lab.node.kubelet.pod_worker import ResourceRequests, Worker
from chaos.lab.node.kubelet.preemption import NoVictimsError, victims, worker_requests
from chaos.lab.node.kubelet.pressure import Pressure
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.kubelet.status import REJECTED
from chaos.lab.objects.accessors import parse_quantity, taints_of, untolerated
from chaos.lab.objects.scheduling import matches_node

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
        self._process, self._pressure = process, pressure
        capacity = CAPACITY | process.machine.spec.capacity
        self._allocatable = {
            "pods": int(capacity["pods"]),
            "cpu": int(parse_quantity(capacity["cpu"]) * 1000),
            "memory": int(parse_quantity(capacity["memory"])),
        }

    def admit(self, worker: Worker, others: list[Worker]) -> AdmitResult:
        """Evaluate a pod. ``others``: all other pods that have not ended."""
        if message := self._pressure.refusal(worker):
            return AdmitResult("Evicted", message)
        result = self._predicates(worker, others)
        if not result.reason and self._process.is_shutting_down:
            return AdmitResult("NodeShutdown", REJECTED)
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
        if not worker.is_static and untolerated(worker.pod, taints_of(node), ("NoExecute",)):
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
