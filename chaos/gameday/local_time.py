"""Moments at which the local time of a zone changes its relation to a time table. All moments are UTC datetimes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

_SECOND = timedelta(seconds=1)
# Between two samples the offset of a zone changes at most once.
_SAMPLE = timedelta(hours=6)


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
