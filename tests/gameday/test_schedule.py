"""Starts of a schedule: the next ones, the one that is due, the missed ones. The clock is the moment passed in.

A schedule in the syntax of CronJobs has all times of the original.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.gameday.calendar import (
    MAX_LATENESS,
    Calendar,
    due,
    kubernetes_cron,
    starting_deadline,
    starts,
    times,
    why_not_due,
)
from chaos.gameday.time_rules import Schedule, Window, zone_of

ALWAYS = Calendar(None)
OFFICE = [{"days": ["Mon", "Tue", "Wed", "Thu"], "from": "09:00", "to": "16:00"}]
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


def make_calendar(zone: str, hours: list[Any] | None = None, not_: list[Any] | None = None) -> Calendar:
    return Calendar(Window.model_validate({"zone": zone, "open": hours or [], "not": not_ or []}))


def schedule(cron: str, **keys: str) -> Schedule:
    return Schedule.model_validate({"cron": cron, **keys})


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


BERLIN = make_calendar("Europe/Berlin")


CASES = [
    ("in UTC", "0 10 * * TUE", ALWAYS, "2026-11-23", ["2026-11-24T10:00", "2026-12-01T10:00"]),
    ("in the zone", "0 10 * * TUE", BERLIN, "2026-11-23", ["2026-11-24T09:00", "2026-12-01T09:00"]),
    ("after, not at", "0 10 * * *", ALWAYS, "2026-11-23T10:00", ["2026-11-24T10:00"]),
    ("the first Tuesday", "0 10 * * TUE#1", ALWAYS, "2026-11-23", ["2026-12-01T10:00", "2027-01-05T10:00"]),
    ("the last day", "0 10 L * *", ALWAYS, "2027-01-31T11:00", ["2027-02-28T10:00", "2027-03-31T10:00"]),
    ("the leap day", "0 10 29 2 *", ALWAYS, "2026-11-23", ["2028-02-29T10:00", "2032-02-29T10:00"]),
    ("summer and winter", "0 10 * * SUN", BERLIN, "2026-03-22", ["2026-03-22T09:00", "2026-03-29T08:00"]),
    ("a time that is skipped", "30 2 * * *", BERLIN, "2026-03-29", ["2026-03-29T01:00", "2026-03-30T00:30"]),
    ("a time that exists twice", "30 2 * * *", BERLIN, "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ("begun between the two", "30 2 * * *", BERLIN, "2026-10-25T00:45", ["2026-10-26T01:30"]),
    ("begun in the second", "30 2 * * *", BERLIN, "2026-10-25T01:15", ["2026-10-26T01:30"]),
    ("hourly, forward", "0 * * * *", BERLIN, "2026-03-28T23:30", ["2026-03-29T00:00", "2026-03-29T01:00"]),
    (
        *("hourly, back", "0 * * * *", BERLIN, "2026-10-24T23:30"),
        ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"],
    ),
    (
        *(
            "the leap day, frozen in leap years only",
            "0 10 29 2 *",
            make_calendar("UTC", not_=["2028-02-29"]),
            "2026-11-23",
        ),
        ["2032-02-29T10:00"],
    ),
    (
        *("skipped by half an hour", "15 2 * * *", make_calendar("Australia/Lord_Howe"), "2026-10-03T12:00"),
        ["2026-10-03T15:30", "2026-10-04T15:15"],
    ),
    (
        *("twice within half an hour", "45 1 * * *", make_calendar("Australia/Lord_Howe"), "2026-04-04T12:00"),
        ["2026-04-04T14:45", "2026-04-05T15:15"],
    ),
    (
        *("a day that a zone skips", "0 10 * * FRI", make_calendar("Pacific/Apia"), "2011-12-29T12:00"),
        ["2011-12-30T10:00", "2012-01-05T20:00"],
    ),
    (
        *("a midnight that is skipped", "0 0 * * *", make_calendar("Africa/Cairo"), "2026-04-23T12:00"),
        ["2026-04-23T22:00", "2026-04-24T21:00"],
    ),
    (
        *("over the end of the year", "59 23 31 12 *", make_calendar("Asia/Kathmandu"), "2026-11-23"),
        ["2026-12-31T18:14", "2027-12-31T18:14"],
    ),
    ("only within the hours", "0 8,10 * * *", make_calendar("UTC", OFFICE), "2026-11-26T11:00", ["2026-11-30T10:00"]),
    ("at the start", "0 9 * * MON", make_calendar("UTC", OFFICE), "2026-11-24", ["2026-11-30T09:00"]),
    ("not at the end", "0 9,16 * * MON", make_calendar("UTC", OFFICE), "2026-11-23T09:00", ["2026-11-30T09:00"]),
    (
        *(
            "not in a freeze",
            "0 10 * * *",
            make_calendar("UTC", not_=[{"from": "12-20", "to": "01-06"}]),
            "2026-12-19T11:00",
        ),
        ["2027-01-07T10:00", "2027-01-08T10:00"],
    ),
    (
        "every minute, frozen for years",
        "* * * * *",
        make_calendar("UTC", not_=[{"from": "2026-01-01", "to": "2030-12-31"}]),
        "2026-11-23",
        ["2031-01-01T00:00", "2031-01-01T00:01"],
    ),
    ("never in the window", "0 8 * * *", make_calendar("UTC", OFFICE), "2026-11-23", []),
]


@pytest.mark.parametrize(("cron", "window", "now", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_next_starts(cron: str, window: Calendar, now: str, expected: list[str]) -> None:
    found = list(islice(starts(schedule(cron), window, moment(now)), max(len(expected), 1)))
    assert found == [moment(text) for text in expected]


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("60 10 * * *", r"invalid schedule '60 10 \* \* \*': bad minute; write it like"),
        ("0 24 * * *", "bad hour"),
        ("0 10 32 * *", "bad day-of-month"),
        ("0 10 * 13 *", "bad month"),
        ("0 10 * * FUN", "bad day-of-week"),
        ("0 10 31 4 *", "bad day-of-month"),
        ("0 10 30 2 *", "bad day-of-month"),
    ],
)
def test_an_invalid_expression(cron: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        next(times(schedule(cron), ALWAYS, moment("2026-11-23")))


WEEKLY, WEEKLY_RUN = schedule("0 10 * * TUE"), schedule("0 10 * * TUE", missed="run")


OPEN = make_calendar("UTC", OFFICE)


DUE = [
    # what, schedule, last, now, begins, missed, dealt with
    ("nothing yet", WEEKLY, "2026-11-24T10:00", "2026-12-01T09:59", "", [], "2026-11-24T10:00"),
    ("on time", WEEKLY, "2026-11-24T10:00", "2026-12-01T10:00", "2026-12-01T10:00", [], "2026-12-01T10:00"),
    ("within startWithin", WEEKLY, "2026-11-24T10:00", "2026-12-01T10:10", "2026-12-01T10:00", [], "2026-12-01T10:00"),
    ("too late", WEEKLY, "2026-11-24T10:00", "2026-12-01T10:11", "", ["2026-12-01T10:00"], "2026-12-01T10:00"),
    ("made up for", WEEKLY_RUN, "2026-11-24T10:00", "2026-12-01T15:00", "2026-12-01T10:00", [], "2026-12-01T10:00"),
    ("waits for the window", WEEKLY_RUN, "2026-11-24T10:00", "2026-12-04T12:00", "", [], "2026-11-24T10:00"),
    (
        "made up for later",
        WEEKLY_RUN,
        "2026-11-24T10:00",
        "2026-12-07T09:00",
        "2026-12-01T10:00",
        [],
        "2026-12-01T10:00",
    ),
    (
        *("one makes up for several", WEEKLY_RUN, "2026-11-10T10:00", "2026-11-25T10:00"),
        *("2026-11-24T10:00", ["2026-11-17T10:00"], "2026-11-24T10:00"),
    ),
    (
        *("several missed, the last on time", WEEKLY, "2026-11-10T10:00", "2026-11-24T10:00"),
        *("2026-11-24T10:00", ["2026-11-17T10:00"], "2026-11-24T10:00"),
    ),
    (
        *("several missed while it waits", WEEKLY_RUN, "2026-11-10T10:00", "2026-11-27T10:00"),
        *("", ["2026-11-17T10:00"], "2026-11-17T10:00"),
    ),
]


@pytest.mark.parametrize(
    ("planned", "last", "now", "begin", "missed", "dealt_with"), [case[1:] for case in DUE], ids=[c[0] for c in DUE]
)
def test_what_is_due(planned: Schedule, last: str, now: str, begin: str, missed: list[str], dealt_with: str) -> None:
    found = due(planned, OPEN, moment(last), moment(now))
    assert found.begin == (moment(begin) if begin else None)
    assert [each.at for each in found.missed] == [moment(text) for text in missed]
    assert found.dealt_with == moment(dealt_with)


def test_why_it_was_missed() -> None:
    late = due(WEEKLY, OPEN, moment("2026-11-10T10:00"), moment("2026-11-24T11:00"))
    assert [each.reason for each in late.missed] == [
        "superseded by the start at 2026-11-24T10:00:00+00:00",
        "1h late, startWithin is 10m",
    ]


def test_a_start_while_the_window_is_closed_was_never_one() -> None:
    found = due(schedule("0 8 * * *"), OPEN, moment("2026-11-23"), moment("2026-11-25T12:00"))
    assert (found.begin, found.missed) == (None, ())


def test_years_of_missed_starts_are_forgotten() -> None:
    now = moment("2026-11-24T10:05")
    found = due(WEEKLY, OPEN, moment("2010-01-01"), now)
    assert found.begin == moment("2026-11-24T10:00")
    assert found.missed
    assert found.missed[0].at >= now - MAX_LATENESS


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["0 10 * * *", "30 2 * * *", "*/20 * * * *", "15 */6 * * *", "0 1,2,3 * * SUN"]),
    st.sampled_from(["skip", "run"]),
    st.sampled_from([OPEN, BERLIN, make_calendar("Europe/Berlin", [{"from": "01:00", "to": "12:00"}])]),
    st.sampled_from(["2026-03-28T12:00", "2026-10-24T12:00", "2026-11-23T12:00"]),
    st.lists(st.integers(1, 900), min_size=1, max_size=12),
)
def test_each_start_begins_once_or_is_missed_once(
    cron: str, missed: str, window: Calendar, first: str, steps: list[int]
) -> None:
    """However often and late it is asked, and with ``run`` the latest one is never lost."""
    planned = schedule(cron, missed=missed)
    now = last = moment(first)
    seen: list[datetime] = []
    for minutes in steps:
        now += timedelta(minutes=minutes)
        found = due(planned, window, last, now)
        seen += [each.at for each in found.missed] + ([found.begin] if found.begin else [])
        assert found.begin is None or (window.is_open(now) and last < found.begin <= now)
        last = found.dealt_with
    expected = []
    for at in starts(planned, window, moment(first)):
        if at > now:
            break
        expected.append(at)
    waiting = expected[len(seen) :]
    assert sorted(seen) == expected[: len(seen)]
    assert len(waiting) <= 1
    assert not waiting or not window.is_open(now)


RUN, SKIP = {"missed": "run"}, {"missed": "skip"}


@pytest.mark.parametrize(
    ("keys", "last", "now", "begins"),
    [
        (SKIP, None, "2026-11-24T10:00", True),
        (SKIP, None, "2026-11-24T10:09", True),
        (SKIP, None, "2026-11-24T10:11", False),
        (SKIP, None, "2026-11-24T09:59", False),
        (SKIP, "2026-11-24T10:00:20", "2026-11-24T10:05", False),  # this start has had its day
        (SKIP, "2026-11-17T10:00:20", "2026-11-24T10:05", True),
        (SKIP, "2026-11-17T10:00:20", "2026-11-25T10:00", False),
        (RUN, None, "2026-11-25T10:00", False),  # no day was missed before the first
        (RUN, None, "2026-11-24T10:05", True),
        (RUN, "2026-11-17T10:00:20", "2026-11-25T10:00", True),
        (RUN, "2026-11-25T10:00:20", "2026-11-26T10:00", False),
        (RUN, "2026-01-06T10:00:20", "2026-11-26T10:00", True),
    ],
)
def test_whether_a_day_is_due(keys: dict[str, str], last: str | None, now: str, begins: bool) -> None:
    tuesdays = schedule("0 10 * * TUE", **keys)
    reason = why_not_due(tuesdays, ALWAYS, moment(last) if last else None, moment(now))
    assert (reason == "") is begins, reason
    assert begins or "no scheduled start is due; the next one is at 2026-1" in reason


def test_a_start_outside_the_window_is_not_due() -> None:
    window = make_calendar("UTC", not_=["2026-11-24"])
    reason = why_not_due(schedule("0 10 * * TUE"), window, None, moment("2026-11-24T10:01"))
    assert reason == "no scheduled start is due; the next one is at 2026-12-01T10:00:00+00:00"


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


REFUSED_CRONS = [
    ("@weekly", "write '0 0 * * SUN'"),
    ("@Midnight", "write '0 0 * * *'"),
    ("@every 24h", "write the times in 5 fields, such as '0 10 * * TUE'"),
    ("@reboot", "write the times in 5 fields, such as '0 10 * * TUE'"),
    ("TZ=Europe/Berlin 0 10 * * 1", "write cron: '0 10 * * 1' here and zone: Europe/Berlin in the window"),
    ("CRON_TZ=UTC @daily", "write cron: '@daily' here and zone: UTC in the window"),
    ("0 10 * * SAT-SUN", "SAT-SUN ends before it begins; write '0 10 * * SAT,SUN'"),
    ("0 10 * * mon,fri-1", "FRI-1 ends before it begins; write '0 10 * * MON,FRI,SAT,SUN,MON'"),
    ("0 0 10 * * 1", "leave out the seconds: '0 10 * * 1'"),
    ("0 10 ? * 1", "write * for ?: '0 10 * * 1'"),
]


@pytest.mark.parametrize(("cron", "hint"), REFUSED_CRONS)
def test_usual_crons_are_refused_with_what_to_write(cron: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(hint)):
        Schedule(cron=cron)
    if written := re.search(r"write '([^']*)'$", hint):
        assert next(times(Schedule(cron=written[1]), ALWAYS, BEGIN))


ZONES = [
    ("localtime", ""),
    ("posixrules", ""),
    ("Local", ""),
    ("Factory", ""),
    ("Europe", ""),
    ("../../etc/passwd", ""),
    ("", ""),
    ("-05:30", ""),
    ("right/Europe/Berlin", "Europe/Berlin"),
    ("posix/Asia/Tokyo", "Asia/Tokyo"),
    ("europe/berlin", "Europe/Berlin"),
    ("Berlin", "Europe/Berlin"),
    ("New York", "America/New_York"),
    ("America/New-York", "America/New_York"),
    ("Zürich", "Europe/Zurich"),
    ("Tokio", "Asia/Tokyo"),
    ("CEST", "Europe/Berlin"),
    ("PST", "America/Los_Angeles"),
    ("utc", "UTC"),
    ("UTC+2", "Etc/GMT-2"),
    ("GMT-05:00", "Etc/GMT+5"),
]


@pytest.mark.parametrize(("name", "meant"), ZONES)
def test_only_names_of_the_iana_database_are_zones(name: str, meant: str) -> None:
    hint = f"did you mean {meant!r}?" if meant else "write a name like Europe/Berlin or UTC"
    with pytest.raises(ValueError, match=re.escape(hint)):
        zone_of(name)
    if meant:
        assert zone_of(meant).key == meant


def test_a_zone_that_only_this_machine_has_is_refused(tmp_path: Path) -> None:
    """As Debian's /usr/share/zoneinfo/localtime, which is the zone of the machine."""
    (tmp_path / "Here").write_bytes((files("tzdata") / "zoneinfo" / "Europe" / "Paris").read_bytes())
    reset_tzpath([str(tmp_path)])
    try:
        assert ZoneInfo("Here").utcoffset(BEGIN.replace(tzinfo=None)) == timedelta(hours=1)
        with pytest.raises(ValueError, match="unknown time zone 'Here'"):
            zone_of("Here")
        assert zone_of("Europe/Berlin").key == "Europe/Berlin"
    finally:
        reset_tzpath()
