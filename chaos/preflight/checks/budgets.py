"""PodDisruptionBudgets that the fault would violate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from chaos.judge.budgets import is_healthy, selects
from chaos.model.kube import PodDisruptionBudget, full_name
from chaos.preflight.check import Check, Diagnosis, list_error_notes, note, ok, refusal
from chaos.preflight.observations import BUDGETS, ClusterObservations, Need, fault_groups


class Budgets(Check):
    """Only evictions respect budgets: a node that goes down takes its pods with it."""

    name = "budgets"
    summary = "no PodDisruptionBudget allows fewer disruptions than it has healthy pods on the node"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
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


CHECK = Budgets()
