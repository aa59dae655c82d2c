"""Which pods the kubelet ends so that a critical one fits: pure. pkg/kubelet/preemption/preemption.go."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.lab.admission import qos_class
from chaos.lab.controllers.scheduling import requests_of
from chaos.lab.kubelet_worker import Needs, Worker


class NoVictimsError(RuntimeError):
    """All pods that may be preempted are not enough."""


def victims(critical: Worker, others: Iterable[Worker], needs: Needs) -> list[Worker]:
    """The fewest and smallest that give the node what it lacks, Guaranteed ones last. Raises NoVictimsError."""
    classes: dict[str, list[Worker]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for other in others:
        if _preemptable(critical, other):
            classes[qos_class(other.pod["spec"]["containers"])].append(other)
    best_effort, burstable, guaranteed = classes.values()
    if lacking := _less(needs, [*best_effort, *burstable, *guaranteed]):
        text = "".join(f"(res: {resource}, q: {amount}), " for resource, amount in lacking.items())
        raise NoVictimsError(f"no set of running pods found to reclaim resources: [{text}]")
    top = _nearest(guaranteed, _less(needs, [*best_effort, *burstable]))
    middle = _nearest(burstable, _less(needs, [*best_effort, *top]))
    return [*_nearest(best_effort, _less(needs, [*middle, *top])), *middle, *top]


def wants(worker: Worker) -> Needs:
    """What a pod takes of a node, in the order in which the kubelet looks at it; told once, as it cannot change."""
    if not worker.needs:
        worker.needs = {"pods": 1, **requests_of(worker.pod)}
    return worker.needs


def _preemptable(critical: Worker, other: Worker) -> bool:
    if not other.critical:
        return True
    priorities = critical.pod["spec"].get("priority"), other.pod["spec"].get("priority")
    return None not in priorities and bool(priorities[0] > priorities[1])


def _less(needs: Needs, pods: list[Worker]) -> Needs:
    """What is still needed without these pods."""
    left = {resource: amount - sum(wants(item)[resource] for item in pods) for resource, amount in needs.items()}
    return {resource: amount for resource, amount in left.items() if amount > 0}


def _nearest(pods: list[Worker], needs: Needs) -> list[Worker]:
    """Again and again the pod that leaves the least to be wanted, the smaller one of two; enough of them exist."""
    left, chosen = list(pods), []
    while needs:
        best = min(left, key=lambda item: (_distance(needs, item), *_size(item)))
        left.remove(best)
        chosen.append(best)
        needs = _less(needs, [best])
    return chosen


def _distance(needs: Needs, worker: Worker) -> float:
    have = wants(worker)
    return sum((max(0, amount - have[resource]) / amount) ** 2 for resource, amount in needs.items())


def _size(worker: Worker) -> tuple[int, int]:
    have = wants(worker)
    return have["memory"], have["cpu"]
