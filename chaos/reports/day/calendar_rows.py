"""The dates of a day with the hours in which its window was open, and what ran in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from chaos.gameday.calendar import Calendar, moments_of
from chaos.reports.day.view import DayView, RunView, moment_of

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
    return tuple(_row(day, calendar, view.runs) for day in dates[:MAX_ROWS])


def _row(day: date, calendar: Calendar, runs: Sequence[RunView]) -> CalendarRow:
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
    """The begin of a date: its first moment where midnight exists twice, near it where it does not exist."""
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
