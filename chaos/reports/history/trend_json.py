"""A trend for programs: one JSON object; keys in snake_case, times in seconds, null for what is not known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from chaos.reports.history.trend import ExpectationTrend, Group, Trend


def trend_document(trend: Trend) -> dict[str, Any]:
    """The trend as JSON types. Positions in ``runs`` are those of points and changes.

    A duration that only exceeded its bound has ``exceeded`` true and the bound as ``seconds``; a quartile or median
    among such is null.
    """
    return {
        "experiment": trend.experiment,
        "group": _group(trend.group),
        "runs": [
            {
                "run": run.run,
                "name": run.name,
                "started": run.started,
                "verdict": run.verdict,
                "kubernetes": run.result.kubernetes if run.result else "",
                "nodefall": run.nodefall,
                "experiment_hash": run.experiment_hash,
                "cluster_uid": run.cluster_uid,
            }
            for run in trend.runs
        ],
        "expectations": expectations_document(trend.expectations),
        "left_out": [{**_group(group), "runs": count} for group, count in trend.others.items()],
        "without_result": trend.unfinished,
    }


def expectations_document(expectations: Iterable[ExpectationTrend]) -> list[dict[str, Any]]:
    """The expectations as JSON types."""
    return [_expectation(each) for each in expectations]


def _group(group: Group) -> dict[str, Any]:
    return {
        "simulated": group.simulated,
        "cluster": group.cluster or None,
        "experiment_hash": group.experiment_hash or None,
    }


def _expectation(each: ExpectationTrend) -> dict[str, Any]:
    spread = each.spread
    return {
        "section": each.section,
        "name": each.name,
        "operator": each.operator,
        "bound": each.bound,
        "counts": {str(status): count for status, count in sorted(each.counts.items())},
        "measured": spread.count if spread else 0,
        "median": _finite(spread.median) if spread else None,
        "first_quartile": _finite(spread.first) if spread else None,
        "third_quartile": _finite(spread.third) if spread else None,
        "points": [
            {
                "run": point.run,
                "status": str(point.status),
                "seconds": point.duration.seconds if point.duration else None,
                "exceeded": bool(point.duration and point.duration.is_exceeded),
            }
            for point in each.points
        ],
        "changes": [
            {
                "run": each.points[change.index].run,
                "before": _finite(change.before),
                "after": _finite(change.after),
                "p": change.p,
            }
            for change in each.changes
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
