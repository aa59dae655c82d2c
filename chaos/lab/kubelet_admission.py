"""Whether the kubelet takes a pod: node pressure, room, affinity, taints, shutdown, in this order. Facts 1.6, 9, 12.

pkg/kubelet/kubelet.go NewMainKubelet (the order), pkg/kubelet/lifecycle/predicate.go (reasons and texts).
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.controllers.scheduling import matches_node
from chaos.lab.kubelet_node import CAPACITY
from chaos.lab.kubelet_preemption import NoVictimsError, victims, wants
from chaos.lab.kubelet_pressure import Pressure
from chaos.lab.kubelet_process import Process
from chaos.lab.kubelet_status import REJECTED
from chaos.lab.kubelet_worker import Needs, Worker
from chaos.lab.objects import taints_of, untolerated
from chaos.lab.quantity import parse_quantity

_RESOURCES = ("pods", "cpu", "memory")
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_TAINTS = "node(s) had taints that the pod didn't tolerate"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An empty ``reason`` admits the pod, once the ``victims`` are gone."""

    reason: str = ""
    message: str = ""
    victims: tuple[Worker, ...] = ()


class Admission:
    """The kubelet looks neither at NoSchedule taints nor at spec.unschedulable."""

    def __init__(self, process: Process, pressure: Pressure) -> None:
        self._process, self._pressure = process, pressure
        capacity = CAPACITY | process.machine.spec.capacity
        self._room = {
            "pods": int(capacity["pods"]),
            "cpu": int(parse_quantity(capacity["cpu"]) * 1000),
            "memory": int(parse_quantity(capacity["memory"])),
        }

    def judge(self, worker: Worker, others: list[Worker]) -> Verdict:
        """``others``: the pods that run, or will, or have not ended yet."""
        if message := self._pressure.refusal(worker):
            return Verdict("Evicted", message)
        verdict = self._predicates(worker, others)
        if not verdict.reason and self._process.shutting_down:
            return Verdict("NodeShutdown", REJECTED)
        return verdict

    def _predicates(self, worker: Worker, others: list[Worker]) -> Verdict:
        """Room first; a critical pod is refused only for what preemption cannot help."""
        used, wanted = _used(others), wants(worker)
        lacking = {name: amount - (self._room[name] - used[name]) for name, amount in wanted.items() if amount}
        lacking = {name: amount for name, amount in lacking.items() if amount > 0}
        mismatch = self._mismatch(worker)
        if not lacking or (mismatch.reason and worker.critical):
            return mismatch
        if worker.critical:
            return _preempt(worker, others, lacking)
        name = next(iter(lacking))
        text = f"Node didn't have enough resource: {name}, requested: {wanted[name]}, used: {used[name]}"
        return Verdict(f"OutOf{name}", f"{text}, capacity: {self._room[name]}")

    def _mismatch(self, worker: Worker) -> Verdict:
        node = self._process.registry.store.get("nodes", "", self._process.node)
        if node is None:
            return Verdict()
        if not matches_node(worker.pod, node):
            return Verdict("NodeAffinity", f"Predicate NodeAffinity failed: {_AFFINITY}")
        if not worker.static and untolerated(worker.pod, taints_of(node), ("NoExecute",)):
            return Verdict("TaintToleration", f"Predicate TaintToleration failed: {_TAINTS}")
        return Verdict()


def _used(workers: list[Worker]) -> Needs:
    used = dict.fromkeys(_RESOURCES, 0)
    for worker in workers:
        for name, amount in wants(worker).items():
            used[name] += amount
    return used


def _preempt(worker: Worker, others: list[Worker], needs: Needs) -> Verdict:
    try:
        return Verdict(victims=tuple(victims(worker, others, needs)))
    except NoVictimsError as error:
        text = f"preemption: error finding a set of pods to preempt: {error}"
        return Verdict(
            "UnexpectedAdmissionError", f"Unexpected error while attempting to recover from admission failure: {text}"
        )
