"""Drawings of a day as SVG: the calendar of its dates, and the timeline of its clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from chaos.gameday.calendar import Calendar, moments_of
from chaos.reports.day.view import ClusterRecord, DayView, RunView, moment_of
from chaos.reports.markup import Html, join, tag

MAX_ROWS = 31
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a date, as fractions of its length from 0 to 1."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class RunMark:
    """A run, or the part of it on this date."""

    run: RunView
    span: Span


@dataclass(frozen=True, slots=True)
class CalendarRow:
    """A date in the zone of the window. ``open``: parts of it. ``hours``: 23 or 25 where clocks change."""

    day: date
    hours: float
    open: tuple[Span, ...]
    freeze: str
    runs: tuple[RunMark, ...]


def calendar_rows(view: DayView) -> tuple[CalendarRow, ...]:
    """The dates from the first to the last thing that happened; if that is more than a month, those with runs."""
    calendar = view.calendar
    begins = [run.run.begun for run in view.runs if run.run.begun is not None]
    ends = [run.run.ended for run in view.runs if run.run.ended is not None]
    known = [moment_of(t) for t in (*begins, *ends, *(record.state.created for record in view.records))]
    dates = sorted({moment.astimezone(calendar.zone).date() for moment in known if moment})
    if dates and (dates[-1] - dates[0]).days < MAX_ROWS:
        dates = [dates[0] + number * _DAY for number in range((dates[-1] - dates[0]).days + 1)]
    return tuple(_date(day, calendar, view.runs) for day in dates[:MAX_ROWS])


def _date(day: date, calendar: Calendar, runs: Sequence[RunView]) -> CalendarRow:
    begin, end = _midnight(day, calendar), _midnight(day + _DAY, calendar)
    marks = []
    for run in runs:
        first = moment_of(run.run.begun) if run.run.begun is not None else None
        last = moment_of(run.run.ended) if run.run.ended is not None else first
        if first and last and first < end and last >= begin:
            marks.append(RunMark(run, _span(first, last, begin, end)))
    freeze = next((str(each) for each in calendar.window.not_ if each.covers(day)), "")
    return CalendarRow(day, (end - begin) / timedelta(hours=1), _open(calendar, begin, end), freeze, tuple(marks))


def _midnight(day: date, calendar: Calendar) -> datetime:
    """The start of a date: its first moment where midnight exists twice, near it where it does not exist."""
    return min(moments_of(day, 0, calendar.zone))


def _open(calendar: Calendar, begin: datetime, end: datetime) -> tuple[Span, ...]:
    found = []
    for opening in calendar.openings(begin):
        if opening.begin >= end:
            break
        found.append(_span(opening.begin, opening.end or end, begin, end))
    return tuple(found)


def _span(first: datetime, last: datetime, begin: datetime, end: datetime) -> Span:
    length = end - begin
    return Span(max(0.0, (first - begin) / length), min(1.0, (last - begin) / length))


def utc_offset(row: CalendarRow, calendar: Calendar) -> str:
    """The offset from UTC at noon of the date, like ``+01:00``."""
    noon = datetime(row.day.year, row.day.month, row.day.day, 12, tzinfo=calendar.zone)
    text = noon.strftime("%z")
    return "UTC" if noon.utcoffset() == UTC.utcoffset(None) else f"{text[:3]}:{text[3:]}"


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


_NAME, _CLUSTER, _AXIS_HEIGHT, _BAR = 120, 40, 24, 22
_LETTER = 7.0  # about the width of one
_SHORTEST = 4  # letters of a name that is cut off
_STEPS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400, 30 * 86400)
_MAX_TICKS = 9


@dataclass(frozen=True, slots=True)
class _Axis:
    """From ``begin`` to ``end``, in seconds since the epoch."""

    begin: float
    end: float

    def x(self, t: float) -> float:
        fraction = (min(max(t, self.begin), self.end) - self.begin) / (self.end - self.begin)
        return _NAME + fraction * (_WIDTH - _NAME - 30)

    def ticks(self) -> list[int]:
        """Round times, at most nine but on a day that took a year."""
        step = next((step for step in _STEPS if (self.end - self.begin) / step <= _MAX_TICKS), _STEPS[-1])
        first = -int(-self.begin // step)
        return [number * step for number in range(first, min(int(self.end // step), first + 400) + 1)]


def render_timeline(view: DayView) -> Html:
    """The drawing; "" for a day of which no time is known."""
    times = [t for record in view.records for t in _times(view, record) if moment_of(t)]
    if not times:
        return Html()
    axis = _Axis(min(times), max(*times, min(times) + 1.0))
    height = _AXIS_HEIGHT + _CLUSTER * len(view.records)
    lanes = [_lane(view, record, axis, _AXIS_HEIGHT + _CLUSTER * number) for number, record in enumerate(view.records)]
    ticks = [_time_tick(view, t, axis, height) for t in axis.ticks()]
    title = f"Timeline from {view.when(axis.begin)} to {view.when(axis.end)}; the table below has the same data"
    box = {"viewBox": f"0 0 {_WIDTH} {height}", "role": "img", "class_": "calendar"}
    return tag("svg", tag("title", title), join(ticks), join(lanes), **box)


def _times(view: DayView, record: ClusterRecord) -> list[float]:
    state = record.state
    runs = [t for run in view.runs if run.cluster == record.cluster for t in (run.run.begun, run.run.ended)]
    waits = [t for wait in state.waits for t in (wait.since, wait.ended)]
    return [t for t in (*runs, *waits, *(halt.at for halt in state.halts)) if t is not None]


def _time_tick(view: DayView, t: float, axis: _Axis, height: int) -> Html:
    moment, x = moment_of(t), f"{axis.x(t):.1f}"
    local = moment.astimezone(view.calendar.zone) if moment else None
    text = "" if local is None else f"{local:%d %b %H:%M}" if axis.end - axis.begin > 86400 else f"{local:%H:%M:%S}"
    line = tag("line", x1=x, x2=x, y1=str(_AXIS_HEIGHT - 4), y2=str(height), class_="tick")
    return tag("g", tag("text", text, x=x, y="13", class_="hour"), line)


def _lane(view: DayView, record: ClusterRecord, axis: _Axis, y: int) -> Html:
    state = record.state
    name = record.cluster if len(record.cluster) <= 16 else f"{record.cluster[:15]}…"
    parts = [tag("text", name, x="0", y=str(y + 18), class_="date")]
    for wait in state.waits:
        title = f"waits for {wait.what}: {'; then '.join(wait.reasons)}"
        end = wait.since if wait.ended is None else wait.ended
        parts.append(_bar(title, "wait", axis, (wait.since, end), (y + 8, _BAR - 12)))
    parts += [_run(view, run, axis, y) for run in view.runs if run.cluster == record.cluster]
    parts += [_line(f"halted by {halt.by}: {halt.reason}", "halted", axis.x(halt.at), y) for halt in state.halts]
    parts += [_line(f"approved by {each.by}", "approved", axis.x(each.at), y) for each in state.approvals]
    return tag("g", join(parts))


def _run(view: DayView, run: RunView, axis: _Axis, y: int) -> Html:
    begin = run.run.begun
    if begin is None or moment_of(begin) is None:
        return Html()
    end = begin if run.run.ended is None else run.run.ended
    label = view.label_of_row(run.row)
    bar = _bar(f"{label}: {run.word}, {view.when(begin)}", f"run {run.word}", axis, (begin, end), (y + 2, _BAR))
    room = int((axis.x(end) - axis.x(begin) - 8) / _LETTER)
    shown = label if len(label) <= room else f"{label[: room - 1]}…" if room >= _SHORTEST else ""
    text = tag("text", shown, x=f"{axis.x(begin) + 5:.1f}", y=str(y + 17), class_="on-bar")
    return join((bar, text))


def _bar(title: str, kind: str, axis: _Axis, times: tuple[float, float], at: tuple[int, int]) -> Html:
    """``times``: from and to. ``at``: y and height."""
    x = axis.x(times[0])
    box = {"x": f"{x:.1f}", "y": str(at[0]), "width": f"{max(3.0, axis.x(times[1]) - x):.1f}", "height": str(at[1])}
    return tag("g", tag("title", title), tag("rect", **box, class_=kind))


def _line(title: str, kind: str, x: float, y: int) -> Html:
    at = {"x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": str(y - 2), "y2": str(y + _BAR + 6)}
    return tag("g", tag("title", title), tag("line", **at, class_=kind))
