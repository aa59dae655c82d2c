"""Filters of the scheduler: pure. Reasons in kube-scheduler's own words. Facts 12."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from chaos.lab.controllers.scheduler.snapshot import Snapshot
from chaos.lab.controllers.scheduler.topology_spread import Spread, domains_of
from chaos.lab.objects.accessors import UNSCHEDULABLE, Object, name_of, taints_of, tolerates, untolerated
from chaos.lab.objects.scheduling import allocatable_amount, allocatable_pods, matches_node, requests_of

_UNSCHEDULABLE = "node(s) were unschedulable"
_TAINTS = "node(s) had untolerated taint(s)"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_SPREAD = "node(s) didn't match pod topology spread constraints"
_FULL = "Too many pods"
UNRESOLVABLE = (_UNSCHEDULABLE, _TAINTS, _AFFINITY)  # by preemption


def feasible_nodes(pod: Object, nodes: Iterable[Object], snapshot: Snapshot) -> tuple[list[Object], Counter[str]]:
    """Nodes that pass all filters, and the number of the other nodes by reason."""
    rejected: Counter[str] = Counter()
    feasible = []
    for node in nodes:
        reason = refusal(pod, node, snapshot)
        if reason:
            rejected[reason] += 1
        else:
            feasible.append(node)
    return feasible, rejected


def fit_error_message(total: int, rejected: Counter[str]) -> str:
    """Message of the event FailedScheduling and of the condition PodScheduled=False."""
    head = f"0/{total} nodes are available"
    if not rejected:
        return f"{head}."
    return f"{head}: " + ", ".join(sorted(f"{number} {reason}" for reason, number in rejected.items())) + "."


def refusal(pod: Object, node: Object, snapshot: Snapshot) -> str:
    """Reason why the node does not fit the pod, empty if it fits."""
    if reason := node_refusal(pod, node) or resource_refusal(requests_of(pod), node, snapshot):
        return reason
    return "" if Spread(pod, snapshot).allows(domains_of(pod, node)) else _SPREAD


def node_refusal(pod: Object, node: Object) -> str:
    """Reason why the node does not fit the pod, whatever runs on the node; empty if there is none."""
    unschedulable = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not any(
        tolerates(item, unschedulable) for item in pod["spec"].get("tolerations") or []
    ):
        return _UNSCHEDULABLE
    if untolerated(pod, taints_of(node), ("NoSchedule", "NoExecute")):
        return _TAINTS
    return "" if matches_node(pod, node) else _AFFINITY


def resource_refusal(requests: dict[str, int], node: Object, snapshot: Snapshot) -> str:
    """Reason why the node has not enough free resources, empty if it has."""
    name = name_of(node)
    if snapshot.pod_counts[name] >= allocatable_pods(node):
        return _FULL
    for resource, amount in requests.items():
        if amount and snapshot.requested[name, resource] + amount > allocatable_amount(node, resource):
            return f"Insufficient {resource}"
    return ""
