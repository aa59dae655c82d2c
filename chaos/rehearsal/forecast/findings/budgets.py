"""Budgets with fewer healthy pods than they demand: an involuntary disruption does not ask."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.kube import PodDisruptionBudget
from chaos.rehearsal.forecast.finding import Case, Finding, FindingKind, seconds_between


def find(case: Case) -> Iterator[Finding]:
    """One finding for each budget that was not overdrawn before the fault."""
    for (namespace, name), history in sorted(case.timeline.poddisruptionbudgets.items()):
        before = history.at(case.fault)
        if before is None or before.is_deleted or _deficit(before.object):
            continue
        begin, seconds, worst = None, 0.0, 0
        for version in history.after(case.fault):
            deficit = 0 if version.is_deleted else _deficit(version.object)
            worst = max(worst, deficit)
            if deficit and begin is None:
                begin = version.t
            elif not deficit and begin is not None:
                seconds, begin = seconds + seconds_between(begin, version.t), None
        if not worst:
            continue
        lasts = begin is not None
        seconds += seconds_between(begin, case.end) if begin is not None else 0.0
        status = before.object.status
        demanded = status.desired_healthy if status else 0
        detail = f"{worst} below the {demanded} healthy pods that it demands"
        yield Finding(
            FindingKind.BUDGET_OVERDRAWN, case.owners.name(namespace, name), worst, round(seconds, 3), lasts, detail
        )


def _deficit(budget: PodDisruptionBudget) -> int:
    status = budget.status
    return max(0, (status.desired_healthy or 0) - (status.current_healthy or 0)) if status else 0
