"""Starts of a scheduled game day: which come next, which is due, which were missed. Moments are aware datetimes.

CronJobs of Kubernetes use github.com/robfig/cron/v3, which knows neither ``#`` nor ``L``, and no 7 for Sunday.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from chaos.core.duration import format_duration
from chaos.gameday.calendar import HORIZON, Calendar
from chaos.gameday.time_rules import Schedule

_SECOND = timedelta(seconds=1)
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
    return f"no start of the schedule is due; the next is {then}"


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
