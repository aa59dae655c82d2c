"""Budgets that the fault would overdraw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from chaos.judge.budgets import is_healthy, selects
from chaos.model.kube import PodDisruptionBudget, full_name
from chaos.preflight.check import Check, Diagnosis, list_error_notes, note, ok, refusal
from chaos.preflight.observations import BUDGETS, ClusterObservations, Need, fault_groups


class Budgets(Check):
    """Only evictions go by budgets: a node that goes takes its pods with it, whatever they say."""

    name = "budgets"
    summary = "no PodDisruptionBudget allows fewer disruptions than it has healthy pods on the node"

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        ends = frozenset({Need.ENDS_PODS})
        budgets = [msgspec.convert(item, PodDisruptionBudget) for item in signs.lists.get(BUDGETS, ())]
        for host, group in fault_groups(signs):
            over = [text for budget in budgets if (text := _budget_violation(signs, budget, group))]
            if not over:
                yield ok("none would be overdrawn", host)
                continue
            told = f"{', '.join(group)}: {'; '.join(over)}"
            if signs.inventory.limits.budgets == "ignore":
                yield note(f"{told} (limits.budgets is ignore)", "", host, ends)
            else:
                mend = "choose another target, or set limits.budgets: ignore in the inventory if that is to be tested"
                yield refusal(told, mend, host, ends)
        yield from list_error_notes(signs, BUDGETS)


def _budget_violation(signs: ClusterObservations, budget: PodDisruptionBudget, nodes: Sequence[str]) -> str:
    allowed = budget.status.disruptions_allowed if budget.status else None
    lost = sum(
        selects(budget.spec.selector if budget.spec else None, pod) and is_healthy(pod)
        for pod in signs.view.pods
        if pod.metadata.namespace == budget.metadata.namespace and pod.spec and pod.spec.node_name in nodes
    )
    if not lost or allowed is None or lost <= allowed:
        return ""
    return f"budget {full_name(budget.metadata)} allows {allowed} disruption(s), and {lost} of its pods are there"


CHECK = Budgets()
