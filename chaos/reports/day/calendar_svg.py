"""The calendar of a day as SVG: a row for each date, its open hours, and a mark for each run."""

from __future__ import annotations

from chaos.reports.day.calendar_rows import CalendarRow, RunMark, Span, calendar_rows, utc_offset
from chaos.reports.day.view import DayView
from chaos.reports.run.markup import Html, join, tag

_WIDTH, _LABEL, _ROW, _TOP, _LANE = 1000, 170, 30, 22, 18
_HOURS = range(0, 25, 3)


def render_calendar(view: DayView) -> Html:
    """The drawing; dates on which clocks change are as wide as others, and say so."""
    rows = calendar_rows(view)
    height = _TOP + _ROW * len(rows) + 4
    ticks = [_tick(hour, height) for hour in _HOURS]
    drawn = [_row(view, row, _TOP + index * _ROW) for index, row in enumerate(rows)]
    label = f"Calendar of {len(rows)} dates: when the window was open, and when runs took place"
    return tag(
        "svg",
        tag("title", label),
        join(drawn),
        join(ticks),
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        class_="calendar",
    )


def _x(fraction: float) -> float:
    return _LABEL + fraction * (_WIDTH - _LABEL - 20)


def _tick(hour: int, height: int) -> Html:
    x = f"{_x(hour / 24):.1f}"
    line = tag("line", x1=x, x2=x, y1=str(_TOP - 4), y2=str(height), class_="tick")
    return tag("g", tag("text", f"{hour:02d}:00", x=x, y="12", class_="hour"), line)


def _row(view: DayView, row: CalendarRow, y: int) -> Html:
    change = "" if row.hours == 24 else f", {row.hours:g} hours"
    name = f"{row.day:%a %Y-%m-%d} {utc_offset(row, view.calendar)}{change}"
    label = tag("text", name, x="0", y=str(y + 14), class_="frozen" if row.freeze else "date")
    parts = [label, _rect(Span(0.0, 1.0), y, "closed", f"freeze {row.freeze}" if row.freeze else "closed")]
    parts += [_rect(span, y, "open", "open") for span in row.open]
    parts += [_mark(view, mark, y) for mark in row.runs]
    return tag("g", join(parts))


def _rect(span: Span, y: int, kind: str, title: str) -> Html:
    width = f"{max(1.0, _x(span.end) - _x(span.begin)):.1f}"
    box = {"x": f"{_x(span.begin):.1f}", "y": str(y), "width": width, "height": str(_LANE)}
    return tag("g", tag("title", title), tag("rect", **box, class_=kind))


def _mark(view: DayView, mark: RunMark, y: int) -> Html:
    run, x = mark.run, _x(mark.span.begin)
    width = f"{max(4.0, _x(mark.span.end) - x):.1f}"
    title = f"{view.label(run)}: {run.word}, {view.when(run.run.begun)}"
    box = {"x": f"{x:.1f}", "y": str(y + 3), "width": width, "height": str(_LANE - 6)}
    return tag("g", tag("title", title), tag("rect", **box, class_=f"run {run.word}"))
