"""A schedule in the syntax of CronJobs has all times of the original."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.gameday.calendar import Calendar
from chaos.gameday.schedule import kubernetes_cron, starting_deadline, times
from chaos.gameday.time_rules import Schedule

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
DAYS = dict(zip(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"], range(7), strict=True))
Bounds = tuple[int, int, dict[str, int]]
BOUNDS: tuple[Bounds, ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, MONTHS),
    (0, 6, DAYS),
)


def field_values(text: str, least: int, most: int, names: dict[str, int]) -> set[int]:
    """As robfig/cron/v3 reads a field (parser.go); an error for what it does not know."""
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        begin, dash, end = span.partition("-")
        first = least if begin in "*?" else names[begin] if begin in names else int(begin)
        last = most if begin in "*?" or (step and not dash) else first
        if dash:
            last = names[end] if end in names else int(end)
        assert least <= first <= last <= most, f"robfig/cron refuses {part}"
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def fires(cron: str, at: datetime) -> bool:
    """Whether robfig/cron fires then (spec.go): days and weekdays are alternatives unless one is *."""
    fields = cron.split()
    minute, hour, day, month, weekday = (
        field_values(text, *bounds) for text, bounds in zip(fields, BOUNDS, strict=True)
    )
    by_day, by_weekday = at.day in day, at.isoweekday() % 7 in weekday
    stars = [text.partition("/")[0] in "*?" and text.partition("/")[2] in ("", "1") for text in (fields[2], fields[4])]
    fits = (by_day and by_weekday) if any(stars) else (by_day or by_weekday)
    return at.minute in minute and at.hour in hour and at.month in month and fits


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 10 * * TUE", "0 10 * * TUE"),
        ("0 10 * * TUE#1", "0 10 * * 2"),
        ("0 10 * * tue#1,fri#3", "0 10 * * 2,5"),
        ("0 10 * * 5L", "0 10 * * 5"),
        ("0 10 * * 7", "0 10 * * 0"),
        ("0 10 * * 5-7", "0 10 * * 0,5,6"),
        ("0 10 * * MON-FRI", "0 10 * * MON-FRI"),
        ("0 10 * * 1/2", "0 10 * * 0,1,3,5"),
        ("0 10 L * *", "0 10 28-31 * *"),
        ("0 10 1,LW JAN *", "0 10 1,26-31 JAN *"),
        ("*/5 8-10 * 1/3 */2", "*/5 8-10 * 1/3 */2"),
    ],
)
def test_table(cron: str, expected: str) -> None:
    assert kubernetes_cron(cron) == expected


WEEKDAYS = st.sampled_from(
    ["*", "MON", "TUE#1", "7", "5-7", "0-7/3", "1/2", "3L", "SUN", "MON-FRI", "2,7", "*/2", "FRI#5,1", "0"]
)
MONTH_DAYS = st.sampled_from(["*", "1", "L", "LW", "10-12", "1,L", "*/10", "5/7", "31"])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["0", "*/20", "5,50"]), st.sampled_from(["10", "8-20/4"]), MONTH_DAYS, WEEKDAYS)
def test_no_time_is_lost(minute: str, hour: str, day: str, weekday: str) -> None:
    cron = f"{minute} {hour} {day} * {weekday}"
    translated = kubernetes_cron(cron)
    found = list(islice(times(Schedule(cron=cron), Calendar(None), BEGIN), 60))
    assert [at for at in found if not fires(translated, at)] == []


def test_how_late_kubernetes_may_be() -> None:
    assert starting_deadline(Schedule(cron="0 10 * * *")) == 600
    assert starting_deadline(Schedule(cron="0 10 * * *", start_within="1s")) == 10  # less is never met
    assert starting_deadline(Schedule(cron="0 10 * * *", missed="run")) == timedelta(days=92).total_seconds()
