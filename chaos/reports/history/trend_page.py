"""A trend as one offline page: a chart for each expectation, its change points, and all values as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from chaos.core.duration import format_duration
from chaos.core.text import printable
from chaos.core.verdict import SYMBOLS, Status
from chaos.reports.history.trend import ExpectationTrend, Point, Trend, spread
from chaos.reports.history.trend_text import change_text, heading, left_out_text, operator_text, point_text, spread_text
from chaos.reports.markup import Html, join, render_page, tag
from chaos.reports.run.outline import SIMULATED, format_utc
from chaos.reports.tables import Column, Rich, badge, page_table

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RADIUS = 1160, 190, 76, 14, 26, 4.0
_HEADROOM = 1.1  # of the greatest value
_STEPS = (1, 1.5, 2, 2.5, 5, 7.5, 10)  # what the axis may count in, times a power of ten
_TICKS = 4


@dataclass(frozen=True, slots=True)
class _Scale:
    """Positions in the chart: runs from left to right, seconds from the bottom to ``top``."""

    runs: int
    top: float

    def x(self, run: float) -> float:
        return _LEFT + (run + 0.5) / self.runs * (_WIDTH - _LEFT)

    def y(self, seconds: float) -> float:
        return _HEIGHT - _BOTTOM - min(seconds, self.top) / self.top * (_HEIGHT - _TOP - _BOTTOM)


def trend_chart(trend: Trend, each: ExpectationTrend) -> Html:
    """The measured durations as points with their bound, median, quartiles and change points.

    A duration that exceeded its bound is drawn at the bound; an inconclusive verdict on the axis. "" if nothing was
    measured.
    """
    seconds = [point.duration.seconds for point in each.points if point.duration]
    if not seconds:
        return Html()
    scale = _Scale(len(trend.runs), _nice_top(max(seconds) * _HEADROOM))
    parts: list[Html] = [
        *_axis(scale),
        *_parts(each, scale),
        *_bounds(each, scale),
        *(_change_line(each.points[change.index].run, scale) for change in each.changes),
        *(_point(trend, point, scale) for point in each.points),
    ]
    title = tag("title", f"{each.name}: {len(seconds)} measured durations")
    return tag("svg", title, join(parts), viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", class_="chart")


def _axis(scale: _Scale) -> Iterator[Html]:
    step = scale.top / _TICKS
    for number in range(_TICKS + 1):
        y = scale.y(number * step)
        yield _line("axis", _LEFT, y, _WIDTH, y)
        yield tag(
            "text", format_duration(round(number * step, 4)), x=str(_LEFT - 8), y=f"{y + 4:.1f}", text_anchor="end"
        )


def _parts(each: ExpectationTrend, scale: _Scale) -> Iterator[Html]:
    """Median and quartiles between the change points; nothing where the median exceeds the bound."""
    edges = [0, *(change.index for change in each.changes), len(each.points)]
    for begin, end in pairwise(edges):
        found = spread([p.seconds for p in each.points[begin:end] if p.seconds is not None])
        if found is None or math.isinf(found.median):
            continue
        left, right = scale.x(each.points[begin].run - 0.4), scale.x(each.points[end - 1].run + 0.4)
        high, low = scale.y(min(found.third, scale.top)), scale.y(found.first)
        yield tag(
            "rect",
            x=f"{left:.1f}",
            y=f"{high:.1f}",
            width=f"{right - left:.1f}",
            height=f"{low - high:.1f}",
            class_="spread",
        )
        yield _line("median", left, scale.y(found.median), right, scale.y(found.median))


def _bounds(each: ExpectationTrend, scale: _Scale) -> Iterator[Html]:
    """The bound of each run, where it is within the chart."""
    for point in each.points:
        if point.duration and point.duration.operator == "within" and point.duration.bound <= scale.top:
            y = scale.y(point.duration.bound)
            yield _line("bound", scale.x(point.run - 0.5), y, scale.x(point.run + 0.5), y)


def _change_line(run: int, scale: _Scale) -> Html:
    x = scale.x(run - 0.5)
    return _line("change", x, _TOP, x, _HEIGHT - _BOTTOM)


def _point(trend: Trend, point: Point, scale: _Scale) -> Html:
    """A dot of the verdict's color: filled if it was measured."""
    seconds = point.duration.seconds if point.duration else 0.0
    if point.duration is None and point.status != "inconclusive":
        return Html()
    label = tag("title", point_text(trend, point))
    x, y = f"{scale.x(point.run):.1f}", f"{scale.y(seconds):.1f}"
    return tag("circle", label, cx=x, cy=y, r=f"{_RADIUS:g}", class_=f"p-{point.status}")


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Html:
    return tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def _nice_top(greatest: float) -> float:
    """The least top of the axis that has round ticks."""
    greatest = max(greatest, 0.004)
    power: float = 10.0 ** math.floor(math.log10(greatest / _TICKS))
    return next(step * power * _TICKS for step in _STEPS if step * power * _TICKS >= greatest * (1 - 1e-9))


_STATUSES = (Status.HELD, Status.KNOWN, Status.VIOLATED, Status.INCONCLUSIVE)
_TITLES = {"hypothesis": "Hypothesis", "recovery": "Recovery", "abort": "Abort conditions"}


def trend_page(trend: Trend) -> str:
    """The whole document, ending in a newline."""
    return render_page(
        "trend.html",
        ("base.css", "trend.css"),
        title=f"{printable(trend.experiment)}: trend over {len(trend.runs)} runs",
        heading=heading(trend),
        sections=[
            (title, [_expectation(trend, each) for each in trend.expectations if each.section == key])
            for key, title in _TITLES.items()
        ],
        left_out=left_out_text(trend),
        simulated=SIMULATED if trend.group.simulated else "",
    )


def _expectation(trend: Trend, each: ExpectationTrend) -> dict[str, Any]:
    median, quartiles = spread_text(each)
    measured = f"{operator_text(each)}: median {median}" + (f", half of them {quartiles}" if quartiles else "")
    return {
        "name": each.name,
        "counts": Rich(
            "counts",
            parts=[badge(f"{SYMBOLS[s]} {each.counts[s]} {s.words}", s) for s in _STATUSES if s in each.counts],
        ),
        "measured": measured if median else "nothing measured",
        "chart": trend_chart(trend, each),
        "changes": [change_text(trend, each, change) for change in each.changes],
        "points": page_table(_points(trend), each.points[::-1], f"Every verdict on: {each.name}"),
    }


def _points(trend: Trend) -> tuple[Column[Point], ...]:
    """Every verdict: what a chart shows to those who see it."""
    return (
        Column("started", lambda point: format_utc(trend.runs[point.run].started or 0.0)),
        Column("run", lambda point: trend.runs[point.run].run or trend.runs[point.run].name),
        Column("verdict", lambda point: point_text(trend, point, with_run=False)),
    )
