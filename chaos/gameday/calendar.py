"""When the window of a game day is open. Moments are aware datetimes; those returned are in UTC.

A moment lies in the window if a clock on the wall, in the zone of the window, shows a time in its hours, and a date
without a freeze. So a time that exists twice when clocks are set back is in it twice, one that does not exist when they
are set forward is not in it at all, and hours over midnight end at midnight before a freeze.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from chaos.gameday.time_rules import DAYS, MINUTES_OF_DAY, Freeze, Hours, Window, zone_of

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
