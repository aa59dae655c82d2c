"""A trend for a terminal, and for programs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from typing import Any

from chaos.core.duration import format_duration
from chaos.core.result import SHORT_UID
from chaos.core.text import count_of, printable
from chaos.core.verdict import SYMBOLS, Status
from chaos.reports.history.trend import ChangePoint, ExpectationTrend, Group, Point, Trend, sparkline
from chaos.reports.run.outline import SIMULATED, format_utc
from chaos.reports.tables import Column, text_table

_WHAT = {"within": "true after", "never": "failed after", "always": "failed after"}
_MAX_RUNS = 40


def trend_text(trend: Trend, encoding: str) -> list[str]:
    """The lines: a table of the expectations, their changes, and the runs that were left out."""
    rest = [*changes_text(trend), *left_out_text(trend)]
    if trend.group.simulated:
        rest.append(SIMULATED)
    return [heading(trend), "", *expectations_table(trend.expectations, encoding), *(["", *rest] if rest else [])]


def expectations_table(expectations: Iterable[ExpectationTrend], encoding: str) -> list[str]:
    """The verdicts and durations of each expectation, a line each."""
    return text_table(_columns(encoding), expectations)


def heading(trend: Trend) -> str:
    """The experiment, the number of runs, their time, and what they have in common."""
    first, last = (run.started or 0.0 for run in (trend.runs[0], trend.runs[-1]))
    count = count_of(len(trend.runs), "run")
    return f"{printable(trend.experiment)}: {count} from {format_utc(first)} to {format_utc(last)} ({trend.group})"


def changes_text(trend: Trend) -> list[str]:
    """One sentence for each change point."""
    return [
        f"changed: {printable(each.name)}: {change_text(trend, each, change)}"
        for each in trend.expectations
        for change in each.changes
    ]


def change_text(trend: Trend, expectation: ExpectationTrend, change: ChangePoint) -> str:
    """The medians beside a change, and the first run after it."""
    before, after = (format_seconds(seconds, expectation) for seconds in (change.before, change.after))
    run = _change_run(trend, expectation, change)
    return f"median {before} before, {after} from {run} on (p = {change.p:.2g})"


def point_text(trend: Trend, point: Point, *, with_run: bool = True) -> str:
    """The verdict of a run, and the duration that it measured."""
    measured = ""
    if point.duration:
        seconds = format_measured(point.duration.seconds)
        over = f"not within {seconds}" if point.duration.is_exceeded else f"{_WHAT[point.duration.operator]} {seconds}"
        measured = f": {over}"
    run = trend.runs[point.run]
    prefix = f"{run.run or run.name}, {format_utc(run.started or 0.0)}: " if with_run else ""
    return printable(f"{prefix}{point.status.words}{measured}")


def _change_run(trend: Trend, expectation: ExpectationTrend, change: ChangePoint) -> str:
    """The first run after a change, its time, and which versions changed with it."""
    position = expectation.points[change.index].run
    run, earlier = trend.runs[position], trend.runs[max(0, position - 1)]
    versions = [
        f"{name} {printable(old)} to {printable(new)}"
        for name, old, new in (
            (
                "Kubernetes",
                earlier.result.kubernetes if earlier.result else "",
                run.result.kubernetes if run.result else "",
            ),
            ("nodefall", earlier.nodefall, run.nodefall),
            ("experiment", earlier.experiment_hash[:SHORT_UID], run.experiment_hash[:SHORT_UID]),
            ("cluster", earlier.cluster_uid[:SHORT_UID], run.cluster_uid[:SHORT_UID]),
        )
        if old != new
    ]
    return f"{printable(run.run or run.name)} ({', '.join([format_utc(run.started or 0.0), *versions])})"


def left_out_text(trend: Trend) -> list[str]:
    """What was left out, and the options that show it."""
    lines = [
        f"left out: {count_of(n, 'run')} of {group}; show with {_options(group)}" for group, n in trend.others.items()
    ]
    return [*lines, *([f"left out: {count_of(trend.unfinished, 'run')} without a result"] if trend.unfinished else [])]


def format_seconds(seconds: float, expectation: ExpectationTrend) -> str:
    """A duration; infinity as ``over 40s``, the bound."""
    if math.isinf(seconds):
        return f"over {format_duration(expectation.bound or 0.0)}"
    return format_measured(seconds)


def format_measured(seconds: float) -> str:
    """A finite duration, to three digits or a tenth of a second."""
    return format_duration(round(seconds, 3) if seconds < 10 else round(seconds, 1))


def operator_text(expectation: ExpectationTrend) -> str:
    """What the durations are: true after, failed after; "" for a moment or an order."""
    return _WHAT.get(expectation.operator, "")


def spread_text(expectation: ExpectationTrend) -> tuple[str, str]:
    """The median, and the quartiles; "" where nothing was measured."""
    found = expectation.spread
    if found is None:
        return "", ""
    first, median, third = (format_seconds(value, expectation) for value in (found.first, found.median, found.third))
    return median, f"{first} to {third}" if first != third else ""


def _columns(encoding: str) -> tuple[Column[ExpectationTrend], ...]:
    return (
        Column("expectation", lambda each: printable(each.name if each.section != "abort" else f"abort: {each.name}")),
        Column("held", lambda each: f"{each.counts.get(Status.HELD, 0)} of {len(each.points)}"),
        Column("median", lambda each: f"{operator_text(each)} {median}" if (median := spread_text(each)[0]) else ""),
        Column("IQR", lambda each: spread_text(each)[1]),
        Column("bound", _bound),
        Column("oldest to newest", lambda each: _line(each, encoding)),
    )


def _bound(each: ExpectationTrend) -> str:
    return "" if each.bound is None or each.operator != "within" else format_duration(round(each.bound, 1))


def _line(each: ExpectationTrend, encoding: str) -> str:
    points = each.points[-_MAX_RUNS:]
    if each.operator != "within":
        return "".join(SYMBOLS[point.status] for point in points)
    return sparkline([point.seconds for point in points], encoding)


def _cluster_option(group: Group) -> str:
    return group.cluster.rpartition(" with ")[0] if group.simulated else group.cluster[:SHORT_UID]


def _options(group: Group) -> str:
    parts: Iterable[str] = (
        f"--cluster {shlex.quote(_cluster_option(group))}" if group.cluster else "",
        f"--experiment-hash {group.experiment_hash[:SHORT_UID]}" if group.experiment_hash else "",
    )
    return " ".join(part for part in parts if part) or "--mix"


def trend_document(trend: Trend) -> dict[str, Any]:
    """The trend as JSON types. Positions in ``runs`` are those of points and changes.

    A duration that only exceeded its bound has ``exceeded`` true and the bound as ``seconds``; a quartile or median
    among such is null.
    """
    return {
        "experiment": trend.experiment,
        "group": _group_document(trend.group),
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
        "left_out": [{**_group_document(group), "runs": count} for group, count in trend.others.items()],
        "without_result": trend.unfinished,
    }


def expectations_document(expectations: Iterable[ExpectationTrend]) -> list[dict[str, Any]]:
    """The expectations as JSON types."""
    return [_expectation(each) for each in expectations]


def _group_document(group: Group) -> dict[str, Any]:
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
