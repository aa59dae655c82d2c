"""Preemption in the kubelet for critical pods: pure. pkg/kubelet/preemption/preemption.go."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.lab.apiserver.admission.defaults import qos_class
from chaos.lab.node.kubelet.pod_worker import ResourceRequests, Worker
from chaos.lab.objects.scheduling import requests_of


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
