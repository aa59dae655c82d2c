"""When the window of a game day is open, and when a scheduled one starts.

Moments are aware datetimes; those returned are in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from chaos.core.duration import format_duration
from chaos.gameday.time_rules import DAYS, MINUTES_OF_DAY, Freeze, Hours, Schedule, Window, zone_of

_SECOND = timedelta(seconds=1)
# Between two samples the offset of a zone changes at most once.
_SAMPLE = timedelta(hours=6)
_DAY = timedelta(days=1)
HORIZON = timedelta(days=10 * 366)  # how far ahead an opening is searched for


def moments_of(day: date, minutes: int, zone: ZoneInfo) -> tuple[datetime, ...]:
    """The moments at which the clock shows this time of ``day``: two if it exists twice.

    For a time that does not exist, two moments near the change of the clock, whose local times are others.
    """
    naive = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)
    return tuple({naive.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)})


def dates_between(begin: datetime, end: datetime, zone: ZoneInfo) -> list[date]:
    """All local dates from ``begin`` to ``end``, and the one before: clocks may be set back over midnight."""
    first, last = begin.astimezone(zone).date(), end.astimezone(zone).date()
    return [first + timedelta(days=number) for number in range(-1, (last - first).days + 1)]


def offset_changes(begin: datetime, end: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The first moment of each new offset from UTC after ``begin`` and up to ``end``, to the second."""
    samples = [begin]
    while samples[-1] < end:
        samples.append(min(samples[-1] + _SAMPLE, end))
    for before, after in pairwise(samples):
        if before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            yield _change(before, after, zone)


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    new = after.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + timedelta(seconds=(after - before) // _SECOND // 2)
        if middle.astimezone(zone).utcoffset() == new:
            after = middle
        else:
            before = middle
    return after


def time_table_moments(begin: datetime, end: datetime, minutes: Iterable[int], zone: ZoneInfo) -> list[datetime]:
    """Moments after ``begin`` and up to ``end`` at which the clock reaches midnight or one of ``minutes``, or jumps.

    Sorted. Between two of them no local date begins and no time of ``minutes`` is passed. Other moments may be among
    them.
    """
    times = sorted({0, *minutes})
    found = set(offset_changes(begin, end, zone))
    for day in dates_between(begin, end, zone):
        found.update(moment for time in times for moment in moments_of(day, time, zone))
    return sorted(moment for moment in found if begin < moment <= end)


@dataclass(frozen=True, slots=True)
class Opening:
    """From ``begin`` to just before ``end``; the end is None if it does not close within the horizon."""

    begin: datetime
    end: datetime | None

    def contains(self, moment: datetime) -> bool:
        return self.begin <= moment and (self.end is None or moment < self.end)


class Calendar:
    """The openings of a window."""

    def __init__(self, window: Window | None) -> None:
        self.window = window or Window()
        self.zone = zone_of(self.window.zone)
        self.always_open = not self.window.open and not self.window.not_
        self._minutes = {minutes % MINUTES_OF_DAY for hours in self.window.open for minutes in (hours.begin, hours.end)}

    def is_open(self, moment: datetime) -> bool:
        return not self.closed_because(moment)

    def closed_because(self, moment: datetime) -> str:
        """Why the window is closed, "" if it is open."""
        if self.always_open:
            return ""
        local = moment.astimezone(self.zone)
        if freeze := self._freeze_on(local.date()):
            return f"freeze {freeze}"
        minutes = local.hour * 60 + local.minute  # no hours begin or end within a minute
        if not self.window.open or any(_in_hours(hours, local.date(), minutes) for hours in self.window.open):
            return ""
        return "outside the hours " + "; ".join(map(str, self.window.open))

    def openings(self, moment: datetime) -> Iterator[Opening]:
        """The opening that contains ``moment``, cut to begin there, and those after it, within the horizon."""
        begin = moment.astimezone(UTC) if self.is_open(moment) else None
        for change, opens in self._changes(moment):
            if opens:
                begin = change
            elif begin is not None:
                yield Opening(begin, change)
                begin = None
        if begin is not None:
            yield Opening(begin, None)

    def next_opening(self, moment: datetime) -> Opening | None:
        """The first of :meth:`openings`; None if there is none within the horizon."""
        return next(self.openings(moment), None)

    def closes(self, moment: datetime) -> datetime | None:
        """When the window that is open at ``moment`` closes; None if it does not, or is closed."""
        opening = self.next_opening(moment) if self.is_open(moment) else None
        return opening.end if opening else None

    def fits(self, moment: datetime, seconds: float) -> bool:
        """Whether what begins at ``moment`` and takes ``seconds`` ends before the window closes."""
        if not self.is_open(moment):
            return False
        end = self.closes(moment)
        return end is None or moment + timedelta(seconds=seconds) <= end

    def next_fit(self, moment: datetime, seconds: float) -> datetime | None:
        """The first moment from ``moment`` on at which :meth:`fits` is true; None without one within the horizon."""
        for opening in self.openings(moment):
            if opening.end is None or opening.begin + timedelta(seconds=seconds) <= opening.end:
                return opening.begin
        return None

    def _freeze_on(self, day: date) -> Freeze | None:
        return next((freeze for freeze in self.window.not_ if freeze.covers(day)), None)

    def _changes(self, moment: datetime) -> Iterator[tuple[datetime, bool]]:
        """Each later moment at which the window opens (True) or closes, within the horizon."""
        if self.always_open:
            return
        is_open, begin = self.is_open(moment), moment.astimezone(UTC)
        end = begin + min(HORIZON, datetime.max.replace(tzinfo=UTC) - begin - 3 * _DAY)
        while begin < end:
            chunk_end = min(begin + _DAY, end)
            if is_open or self._may_open(begin, chunk_end):
                for candidate in time_table_moments(begin, chunk_end, self._minutes, self.zone):
                    if self.is_open(candidate) != is_open:
                        is_open = not is_open
                        yield candidate, is_open
            begin = chunk_end

    def _may_open(self, begin: datetime, end: datetime) -> bool:
        """Whether any date of the zone between the two is without a freeze, and has hours or follows a day that has."""
        return any(not self._freeze_on(day) and self._has_hours(day) for day in dates_between(begin, end, self.zone))

    def _has_hours(self, day: date) -> bool:
        names = {DAYS[day.weekday()], DAYS[day.weekday() - 1]}
        return not self.window.open or any(names & set(hours.days) for hours in self.window.open)


def _in_hours(hours: Hours, day: date, minutes: int) -> bool:
    """Whether ``minutes`` since midnight of ``day`` lie in hours that began on this day or the one before."""
    today = DAYS[day.weekday()] in hours.days and hours.begin <= minutes < hours.end
    before = DAYS[day.weekday() - 1] in hours.days and minutes + MINUTES_OF_DAY < hours.end
    return today or before


MAX_LATENESS = timedelta(days=92)  # a start that was missed before this is forgotten
_LAST_DAYS = {"L": "28-31", "LW": "26-31"}
_SAME_WEEKDAYS = re.compile(r"\*(/[0-9]+)?|[0-6A-Z,-]+")


@dataclass(frozen=True, slots=True)
class Missed:
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Due:
    """What to do now: begin the day that starts at ``begin`` (nothing if None), and record ``missed``.

    ``dealt_with`` is the latest start that needs no more attention: the ``last`` of the next call.
    """

    begin: datetime | None
    missed: tuple[Missed, ...]
    dealt_with: datetime


def times(schedule: Schedule, calendar: Calendar, after: datetime) -> Iterator[datetime]:
    """The times of the schedule after ``after``, in UTC, whether the window is open or not.

    A time that clocks skip is that of the first minute after it; one that exists twice is the first of both. Times of
    a schedule with ``*`` for minute or hour follow each other as if clocks were never changed. Raises ValueError if
    the expression is invalid.
    """
    try:
        source = CronSim(schedule.cron, after.astimezone(calendar.zone))
    except CronSimError as error:
        what = str(error).removeprefix("Bad ")
        raise ValueError(f"invalid schedule {schedule.cron!r}: bad {what}; write it like 0 10 * * TUE") from None
    latest = after.astimezone(UTC)
    for local in source:
        at = local.astimezone(UTC)
        if at > latest:  # begun in the second of two equal hours, the first times are those of the first
            latest = at
            yield at


def starts(
    schedule: Schedule, calendar: Calendar, after: datetime, until: datetime | None = None
) -> Iterator[datetime]:
    """The times of the schedule after ``after`` that lie in the window, up to ``until``, by default the horizon."""
    moment, end = after, until or after + HORIZON
    while (at := next(times(schedule, calendar, moment), None)) and at <= end:
        moment = at
        if calendar.is_open(at):
            yield at
        elif opening := calendar.next_opening(at):
            moment = opening.begin - _SECOND  # not time by time: a freeze may be years long
        else:
            return


def due(schedule: Schedule, calendar: Calendar, last: datetime, now: datetime) -> Due:
    """What to do at ``now`` about the starts after ``last``, the latest one that was dealt with.

    The latest start begins if the window is open, and it is at most ``startWithin`` late or ``missed`` is ``run``.
    Earlier ones were missed: one day makes up for all of them.
    """
    passed = list(starts(schedule, calendar, max(last, now - MAX_LATENESS), now))
    if not passed:
        return Due(None, (), last)
    *earlier, latest = passed
    superseded = tuple(Missed(at, f"superseded by the start at {latest.isoformat()}") for at in earlier)
    late = (now - latest).total_seconds()
    if late > schedule.grace and schedule.missed == "skip":
        reason = f"{format_duration(late)} late, startWithin is {schedule.start_within}"
        return Due(None, (*superseded, Missed(latest, reason)), latest)
    if calendar.is_open(now):
        return Due(latest, superseded, latest)
    return Due(None, superseded, earlier[-1] if earlier else last)


def why_not_due(schedule: Schedule, calendar: Calendar, last: datetime | None, now: datetime) -> str:
    """Why no day is to begin at ``now``, "" if one is. ``last``: when the last day began, None if none ever has.

    A day begins for a start after the last one that is at most ``startWithin`` late; with ``missed: run``, for any that
    was missed since the last day. The day itself waits until the window is open.
    """
    since = now - timedelta(seconds=schedule.grace) - _SECOND
    if last is not None:
        since = max(last, now - MAX_LATENESS if schedule.missed == "run" else since)
    if any(starts(schedule, calendar, since, now)):
        return ""
    following = next(starts(schedule, calendar, now), None)
    then = f"at {following.astimezone(calendar.zone).isoformat()}" if following else "not within ten years"
    return f"no scheduled start is due; the next one is {then}"


def kubernetes_cron(cron: str) -> str:
    """Five fields whose times are all of ``cron``, and maybe more: ``gameday run --scheduled`` passes those over.

    ``TUE#1`` becomes every Tuesday, the last day of the month each of the last four.
    """
    minute, hour, day, month, weekday = cron.upper().split()
    days = ",".join(_LAST_DAYS.get(part, part) for part in day.split(","))
    if not _SAME_WEEKDAYS.fullmatch(weekday) or re.search(r"[0-9]L", weekday):
        found = CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC)).weekdays
        numbers = {(each if isinstance(each, int) else each[0]) % 7 for each in found}
        weekday = ",".join(map(str, sorted(numbers)))
    return f"{minute} {hour} {days} {month} {weekday}"


def starting_deadline(schedule: Schedule) -> int:
    """Seconds after which Kubernetes gives up a start."""
    return int(MAX_LATENESS.total_seconds() if schedule.missed == "run" else max(schedule.grace, 10))
