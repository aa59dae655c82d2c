"""Checks of the pods on the targets, and of what a target's failure would take down with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from chaos.core.kube import PodDisruptionBudget, controller_of, full_name
from chaos.engine.observations import BUDGETS, ClusterObservations, Need, fault_groups
from chaos.engine.preflight.check import Diagnosis, check, list_error_notes, note, ok, refusal, warning
from chaos.verdicts.judge.budgets import is_healthy, selects


@check("budgets", "no PodDisruptionBudget allows fewer disruptions than it has healthy pods on the node")
def budgets(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Only evictions respect budgets: a node that goes down takes its pods with it."""
    needs = frozenset({Need.ENDS_PODS})
    budgets = [msgspec.convert(item, PodDisruptionBudget) for item in observations.lists.get(BUDGETS, ())]
    for host, group in fault_groups(observations):
        violations = [text for budget in budgets if (text := _budget_violation(observations, budget, group))]
        if not violations:
            yield ok("no budget would be violated", host)
            continue
        message = f"{', '.join(group)}: {'; '.join(violations)}"
        if observations.inventory.limits.budgets == "ignore":
            yield note(f"{message} (limits.budgets is ignore)", "", host, needs)
        else:
            hint = "choose another target, or set limits.budgets: ignore in the inventory to test just that"
            yield refusal(message, hint, host, needs)
    yield from list_error_notes(observations, BUDGETS)


def _budget_violation(observations: ClusterObservations, budget: PodDisruptionBudget, nodes: Sequence[str]) -> str:
    allowed = budget.status.disruptions_allowed if budget.status else None
    lost = sum(
        selects(budget.spec.selector if budget.spec else None, pod) and is_healthy(pod)
        for pod in observations.view.pods
        if pod.metadata.namespace == budget.metadata.namespace and pod.spec and pod.spec.node_name in nodes
    )
    if not lost or allowed is None or lost <= allowed:
        return ""
    return f"budget {full_name(budget.metadata)} allows {allowed} disruption(s), and {lost} of its pods run there"


@check("coredns", "cluster DNS has pods on other nodes too")
def coredns(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Check that cluster DNS (label k8s-app=kube-dns) survives: without DNS everything appears broken."""
    nodes = [
        pod.spec.node_name
        for pod in observations.view.pods
        if pod.spec and pod.metadata.namespace == "kube-system" and is_healthy(pod)
        if (pod.metadata.labels or {}).get("k8s-app") == "kube-dns"
    ]
    groups = [(host, group) for host, group in fault_groups(observations) if nodes and set(nodes) <= set(group)]
    for host, group in groups:
        message = f"all {len(nodes)} CoreDNS pod(s) run on {', '.join(group)}: names are not resolved without them"
        hint = "spread them over nodes, or choose another target"
        yield warning(message, hint, host, frozenset({Need.ENDS_PODS}))
    if not groups:
        yield ok(f"{len(nodes)} pod(s)" if nodes else "no CoreDNS pods")


@check("stateful-grace", "no StatefulSet's pod on the node has terminationGracePeriodSeconds 0")
def stateful_grace(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """A pod without a grace period is removed from the API immediately, while it may still run on an unreachable node.

    Then two pods of that name run (CheckGracefulDelete in pkg/registry/core/pod/strategy.go).
    """
    for name in sorted(observations.hosts):
        found = [
            full_name(pod.metadata)
            for pod in observations.view.pods
            if pod.spec and pod.spec.node_name == name and pod.spec.termination_grace_period_seconds == 0
            if (owner := controller_of(pod)) and owner.kind == "StatefulSet"
        ]
        if found:
            message = f"{name}: {', '.join(sorted(found))} of a StatefulSet with terminationGracePeriodSeconds 0"
            hint = "give it a grace period: otherwise two pods with the same name may run at the same time"
            yield warning(message, hint, name, frozenset({Need.ENDS_PODS}))
        else:
            yield ok("none", name)


@check("static-pods", "no static pods run on the node")
def static_pods(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """A static pod that a shutdown has ended does not start again before the kubelet does (facts 1.8)."""
    needs = frozenset({Need.DOWN, Need.LOGIND})
    for name, host in sorted(observations.hosts.items()):
        if pods := host.target.static_pods:
            message = f"{name} runs static pods ({', '.join(pods)}): they are not moved to other nodes"
            yield note(message, "choose a node without them, or rely on the kubelet to start them again", name, needs)
        else:
            yield ok("none", name)
