"""When windows open and close: a table of moments, and a naive reference that asks minute by minute.

Moments without an offset are in UTC. The clock is the first moment of each case.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.gameday.calendar import Calendar
from chaos.gameday.time_rules import DAYS, Window

_MINUTE = timedelta(minutes=1)
OFFICE = {"days": ["Mon", "Tue", "Wed", "Thu"], "from": "09:00", "to": "16:00"}
NIGHT = {"days": ["Fri"], "from": "22:00", "to": "02:00"}
EARLY = {"from": "01:30", "to": "02:30"}
DAY = {"from": "00:00", "to": "24:00"}


def calendar(zone: str, *hours: dict[str, Any], not_: list[Any] | None = None) -> Calendar:
    return Calendar(Window.model_validate({"zone": zone, "open": list(hours), "not": not_ or []}))


def moment(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


Case = tuple[str, Calendar, str, str, str]  # what, window, now, begin and end of the next opening
CASES: list[Case] = [
    # Hours and days.
    ("before", calendar("UTC", OFFICE), "2026-11-23T08:59", "2026-11-23T09:00", "2026-11-23T16:00"),
    ("at the start", calendar("UTC", OFFICE), "2026-11-23T09:00", "2026-11-23T09:00", "2026-11-23T16:00"),
    ("within", calendar("UTC", OFFICE), "2026-11-23T12:34:56", "2026-11-23T12:34:56", "2026-11-23T16:00"),
    ("last second", calendar("UTC", OFFICE), "2026-11-23T15:59:59", "2026-11-23T15:59:59", "2026-11-23T16:00"),
    ("at the end", calendar("UTC", OFFICE), "2026-11-23T16:00", "2026-11-24T09:00", "2026-11-24T16:00"),
    ("weekend", calendar("UTC", OFFICE), "2026-11-26T16:00", "2026-11-30T09:00", "2026-11-30T16:00"),
    (
        "two hours of a day",
        calendar("UTC", {"from": "09:00", "to": "11:00"}, {"from": "14:00", "to": "15:00"}),
        *("2026-11-23T11:00", "2026-11-23T14:00", "2026-11-23T15:00"),
    ),
    (
        "hours that touch are one opening",
        calendar("UTC", {"from": "09:00", "to": "11:00"}, {"from": "11:00", "to": "15:00"}),
        *("2026-11-23T08:00", "2026-11-23T09:00", "2026-11-23T15:00"),
    ),
    (
        "hours that overlap are one opening",
        calendar("UTC", {"from": "09:00", "to": "13:00"}, {"days": ["Mon"], "from": "11:00", "to": "15:00"}),
        *("2026-11-23T08:00", "2026-11-23T09:00", "2026-11-23T15:00"),
    ),
    ("a whole day", calendar("UTC", DAY | {"days": ["Mon"]}), "2026-11-24T00:00", "2026-11-30", "2026-12-01"),
    ("two days", calendar("UTC", DAY | {"days": ["Mon", "Tue"]}), "2026-11-22T00:00", "2026-11-23", "2026-11-25"),
    # Over midnight.
    ("over midnight", calendar("UTC", NIGHT), "2026-11-27T12:00", "2026-11-27T22:00", "2026-11-28T02:00"),
    ("after midnight", calendar("UTC", NIGHT), "2026-11-28T01:00", "2026-11-28T01:00", "2026-11-28T02:00"),
    ("the day before is none", calendar("UTC", NIGHT), "2026-11-27T01:00", "2026-11-27T22:00", "2026-11-28T02:00"),
    (
        "over Sunday's midnight",
        calendar("UTC", NIGHT | {"days": ["Sun"]}),
        *("2026-11-29T23:00", "2026-11-29T23:00", "2026-11-30T02:00"),
    ),
    (
        "almost a day, every day",
        calendar("UTC", {"from": "09:00", "to": "08:59"}),
        *("2026-11-23T08:59", "2026-11-23T09:00", "2026-11-24T08:59"),
    ),
    (
        "over the end of the year",
        calendar("UTC", NIGHT | {"days": ["Thu"]}),
        *("2026-12-31T12:00", "2026-12-31T22:00", "2027-01-01T02:00"),
    ),
    # Zones.
    ("Berlin", calendar("Europe/Berlin", OFFICE), "2026-11-23T07:59", "2026-11-23T08:00", "2026-11-23T15:00"),
    ("Kathmandu", calendar("Asia/Kathmandu", OFFICE), "2026-11-23T00:00", "2026-11-23T03:15", "2026-11-23T10:15"),
    ("a day ahead", calendar("Pacific/Kiritimati", OFFICE), "2026-11-22T00:00", "2026-11-22T19:00", "2026-11-23T02:00"),
    ("a day behind", calendar("Pacific/Honolulu", OFFICE), "2026-11-23T00:00", "2026-11-23T19:00", "2026-11-24T02:00"),
    (
        "now in another zone",
        calendar("America/New_York", OFFICE),
        *("2026-11-23T15:00+01:00", "2026-11-23T14:00", "2026-11-23T21:00"),
    ),
    # Clocks are set forward: 02:00 to 03:00 does not exist in Berlin on 2026-03-29, at 01:00 UTC.
    (
        "forward: day before",
        calendar("Europe/Berlin", EARLY),
        "2026-03-28T00:00",
        "2026-03-28T00:30",
        "2026-03-28T01:30",
    ),
    ("forward: cut", calendar("Europe/Berlin", EARLY), "2026-03-29T00:00", "2026-03-29T00:30", "2026-03-29T01:00"),
    (
        "forward: begins within the gap",
        calendar("Europe/Berlin", {"from": "02:30", "to": "04:00"}),
        *("2026-03-29T00:00", "2026-03-29T01:00", "2026-03-29T02:00"),
    ),
    (
        "forward: wholly within the gap",
        calendar("Europe/Berlin", {"from": "02:15", "to": "02:45"}),
        *("2026-03-29T00:00", "2026-03-30T00:15", "2026-03-30T00:45"),
    ),
    (
        "forward: a day of 23 hours",
        calendar("Europe/Berlin", DAY | {"days": ["Sun"]}),
        *("2026-03-28T12:00", "2026-03-28T23:00", "2026-03-29T22:00"),
    ),
    (
        "forward: over midnight",
        calendar("Europe/Berlin", {"days": ["Sat"], "from": "22:00", "to": "05:00"}),
        *("2026-03-28T12:00", "2026-03-28T21:00", "2026-03-29T03:00"),
    ),
    (
        "forward at midnight",  # Cairo: 00:00 to 01:00 of 2026-04-24, at 22:00 UTC
        calendar("Africa/Cairo", {"days": ["Fri"], "from": "00:30", "to": "02:00"}),
        *("2026-04-23T12:00", "2026-04-23T22:00", "2026-04-23T23:00"),
    ),
    (
        "forward by half an hour",  # Lord Howe: 02:00 to 02:30 of 2026-10-04, at 15:30 UTC
        calendar("Australia/Lord_Howe", {"from": "01:30", "to": "03:00"}),
        *("2026-10-03T12:00", "2026-10-03T15:00", "2026-10-03T16:00"),
    ),
    # Clocks are set back: 02:00 to 03:00 exists twice in Berlin on 2026-10-25, until and from 01:00 UTC.
    (
        "back: a time that exists twice",
        calendar("Europe/Berlin", {"from": "02:15", "to": "02:30"}),
        *("2026-10-25T00:00", "2026-10-25T00:15", "2026-10-25T00:30"),
    ),
    (
        "back: its second time",
        calendar("Europe/Berlin", {"from": "02:15", "to": "02:30"}),
        *("2026-10-25T00:30", "2026-10-25T01:15", "2026-10-25T01:30"),
    ),
    ("back: closes", calendar("Europe/Berlin", EARLY), "2026-10-24T23:00", "2026-10-24T23:30", "2026-10-25T00:30"),
    ("back: opens again", calendar("Europe/Berlin", EARLY), "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"),
    (
        "back: up to the hour that exists twice",
        calendar("Europe/Berlin", {"from": "02:00", "to": "03:00"}),
        *("2026-10-25T00:00", "2026-10-25T00:00", "2026-10-25T02:00"),
    ),
    (
        "back: a day of 25 hours",
        calendar("Europe/Berlin", DAY | {"days": ["Sun"]}),
        *("2026-10-24T12:00", "2026-10-24T22:00", "2026-10-25T23:00"),
    ),
    (
        "back over midnight",  # Cairo: 24:00 of 2026-10-29 is 23:00 again, at 21:00 UTC
        calendar("Africa/Cairo", {"days": ["Thu"], "from": "22:00", "to": "24:00"}),
        *("2026-10-29T12:00", "2026-10-29T19:00", "2026-10-29T22:00"),
    ),
    (
        "back by half an hour",  # Lord Howe: 02:00 of 2026-04-05 is 01:30 again, at 15:00 UTC
        calendar("Australia/Lord_Howe", {"from": "01:30", "to": "01:45"}),
        *("2026-04-04T14:45", "2026-04-04T15:00", "2026-04-04T15:15"),
    ),
    # What a change of clocks does to midnight, and to the dates of a freeze.
    (
        "forward: over midnight, ends within the gap",
        calendar("Europe/Berlin", {"days": ["Sat"], "from": "22:00", "to": "02:30"}),
        *("2026-03-28T12:00", "2026-03-28T21:00", "2026-03-29T01:00"),
    ),
    (
        "forward: over a midnight that is skipped",  # Cairo, 2026-04-24
        calendar("Africa/Cairo", {"days": ["Thu"], "from": "22:00", "to": "00:30"}),
        *("2026-04-23T12:00", "2026-04-23T20:00", "2026-04-23T22:00"),
    ),
    (
        "forward: within a gap over midnight, a day without hours",
        calendar("Africa/Cairo", {"days": ["Fri"], "from": "00:00", "to": "01:00"}),
        *("2026-04-23T12:00", "2026-04-30T21:00", "2026-04-30T22:00"),
    ),
    (
        "forward where winter is the exception",  # Dublin: 01:00 to 02:00 of 2026-03-29
        calendar("Europe/Dublin", EARLY),
        *("2026-03-29T00:00", "2026-03-29T01:00", "2026-03-29T01:30"),
    ),
    (
        "a freeze of a day that begins at 01:00",
        calendar("Africa/Cairo", not_=["2026-04-24"]),
        *("2026-04-23T12:00", "2026-04-23T12:00", "2026-04-23T22:00"),
    ),
    (
        "a freeze of the day after the hour that exists twice",
        calendar("Africa/Cairo", not_=["2026-10-30"]),
        *("2026-10-29T12:00", "2026-10-29T12:00", "2026-10-29T22:00"),
    ),
    (
        "a freeze of a date that begins twice",  # St. John's: 00:01 is 23:01 of the 6th, at 02:31 UTC
        calendar("America/St_Johns", not_=["2010-11-07"]),
        *("2010-11-07T02:30", "2010-11-07T02:31", "2010-11-07T03:30"),
    ),
    (
        "hours of a date to which clocks go back",
        calendar("America/St_Johns", {"from": "23:15", "to": "23:45"}),
        *("2010-11-07T02:30", "2010-11-07T02:45", "2010-11-07T03:15"),
    ),
    (
        "a freeze of a day of 24 and a half hours",
        calendar("Australia/Lord_Howe", not_=["2026-04-05"]),
        *("2026-04-04T14:00", "2026-04-05T13:30", ""),
    ),
    (
        "a freeze of another zone's date",  # 2026-11-24 in Auckland is over at 11:00 UTC
        calendar("Pacific/Auckland", OFFICE, not_=["2026-11-24"]),
        *("2026-11-23T12:00", "2026-11-24T20:00", "2026-11-25T03:00"),
    ),
    # A zone changes its offset, or its day.
    (
        "a zone is set back for good",  # Volgograd: 02:00 of 2020-12-27 is 01:00 again, at 22:00 UTC
        calendar("Europe/Volgograd", {"from": "09:00", "to": "10:00"}),
        *("2020-12-26T12:00", "2020-12-27T06:00", "2020-12-27T07:00"),
    ),
    (
        "a zone skips a day",  # Apia: 2011-12-30 does not exist; the 31st begins at 10:00 UTC of the 30th
        calendar("Pacific/Apia", DAY | {"days": ["Fri", "Sat"]}),
        *("2011-12-29T12:00", "2011-12-30T10:00", "2011-12-31T10:00"),
    ),
    (
        "over midnight before a day that is skipped",
        calendar("Pacific/Apia", NIGHT | {"days": ["Thu"]}),
        *("2011-12-29T12:00", "2011-12-30T08:00", "2011-12-30T10:00"),
    ),
    (
        "over midnight of a day that is skipped",  # Saturday 00:00, the day after Friday
        calendar("Pacific/Apia", NIGHT),
        *("2011-12-29T12:00", "2011-12-30T10:00", "2011-12-30T12:00"),
    ),
    (
        "a freeze of a day that is skipped",
        calendar("Pacific/Apia", not_=["2011-12-30"]),
        *("2011-12-29T12:00", "2011-12-29T12:00", ""),
    ),
    # Freezes.
    (
        "a date",
        calendar("UTC", OFFICE, not_=["2026-11-24"]),
        *("2026-11-23T16:00", "2026-11-25T09:00", "2026-11-25T16:00"),
    ),
    (
        "a date every year",
        calendar("UTC", DAY, not_=["12-25"]),
        *("2029-12-25T12:00", "2029-12-26", "2030-12-25"),
    ),
    (
        "a range, both ends included",
        calendar("UTC", OFFICE, not_=[{"from": "2026-11-23", "to": "2026-11-30"}]),
        *("2026-11-20T16:00", "2026-12-01T09:00", "2026-12-01T16:00"),
    ),
    (
        "a range of every year over its end",
        calendar("UTC", OFFICE, not_=[{"from": "12-20", "to": "01-06"}]),
        *("2026-12-17T16:00", "2027-01-07T09:00", "2027-01-07T16:00"),
    ),
    (
        "the day before a range of every year",
        calendar("UTC", not_=[{"from": "12-20", "to": "01-06"}]),
        *("2026-12-19T12:00", "2026-12-19T12:00", "2026-12-20"),
    ),
    (
        "a range with a year over its end",
        calendar("UTC", OFFICE, not_=[{"from": "2026-12-20", "to": "2027-01-06"}]),
        *("2027-12-20T00:00", "2027-12-20T09:00", "2027-12-20T16:00"),
    ),
    (
        "begins in the evening before a freeze",
        calendar("UTC", NIGHT, not_=["2026-11-28"]),
        *("2026-11-27T12:00", "2026-11-27T22:00", "2026-11-28T00:00"),
    ),
    (
        "ends in the morning after a freeze",
        calendar("UTC", NIGHT, not_=["2026-11-27"]),
        *("2026-11-27T12:00", "2026-11-28T00:00", "2026-11-28T02:00"),
    ),
    (
        "days of the window's zone",
        calendar("Asia/Tokyo", not_=["2026-11-24"]),
        *("2026-11-23T12:00", "2026-11-23T12:00", "2026-11-23T15:00"),
    ),
    (
        "a freeze while clocks are set back",
        calendar("Europe/Berlin", not_=["2026-10-25"]),
        *("2026-10-24T23:00", "2026-10-25T23:00", ""),
    ),
    (
        "wholly covered for years",
        calendar("UTC", OFFICE, not_=[{"from": "2026-01-01", "to": "2031-06-30"}]),
        *("2026-11-23T12:00", "2031-07-01T09:00", "2031-07-01T16:00"),
    ),
    ("wholly covered for good", calendar("UTC", OFFICE, not_=[{"from": "01-01", "to": "12-31"}]), "2026-11-23", "", ""),
    (
        "its only days are frozen",
        calendar("UTC", {"days": ["Wed"], "from": "09:00", "to": "10:00"}, not_=["2026-11-25", "2026-12-02"]),
        *("2026-11-23T12:00", "2026-12-09T09:00", "2026-12-09T10:00"),
    ),
    # The leap day.
    ("leap day", calendar("UTC", OFFICE), "2028-02-28T16:00", "2028-02-29T09:00", "2028-02-29T16:00"),
    (
        "a freeze on the leap day",
        calendar("UTC", OFFICE, not_=["02-29"]),
        *("2028-02-28T16:00", "2028-03-01T09:00", "2028-03-01T16:00"),
    ),
    (
        "the leap day freezes no other day",
        calendar("UTC", OFFICE, not_=["02-29"]),
        *("2027-02-28T12:00", "2027-03-01T09:00", "2027-03-01T16:00"),
    ),
    (
        "a freeze from the leap day on, in another year",
        calendar("UTC", DAY, not_=[{"from": "02-29", "to": "03-02"}]),
        *("2027-02-28T12:00", "2027-02-28T12:00", "2027-03-01"),
    ),
    (
        "a freeze up to the leap day, in another year",
        calendar("UTC", DAY, not_=[{"from": "02-27", "to": "02-29"}]),
        *("2027-02-27T12:00", "2027-03-01", "2028-02-27"),
    ),
    # The end of a year.
    (
        "over the end of a year whose last day is frozen",
        calendar("UTC", NIGHT | {"days": ["Thu"]}, not_=["12-31"]),
        *("2026-12-31T12:00", "2027-01-01", "2027-01-01T02:00"),
    ),
    (
        "the last minute of a year",
        calendar("Pacific/Kiritimati", DAY | {"days": ["Thu"]}),
        *("2026-12-31T09:59", "2026-12-31T09:59", "2026-12-31T10:00"),
    ),
    ("no window", Calendar(None), "2026-11-23T12:00", "2026-11-23T12:00", ""),
]


@pytest.mark.parametrize(("calendar_", "now", "begin", "end"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_next_opening(calendar_: Calendar, now: str, begin: str, end: str) -> None:
    opening = calendar_.next_opening(moment(now))
    if not begin:
        assert opening is None
        return
    assert opening is not None
    assert (opening.begin, opening.end) == (moment(begin), moment(end) if end else None)
    assert calendar_.is_open(moment(now)) == (opening.begin == moment(now))
    assert calendar_.closes(moment(now)) == (opening.end if opening.begin == moment(now) else None)


def test_the_table_has_every_kind() -> None:
    assert len({case[0] for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize(
    ("now", "seconds", "fits", "next_fit"),
    [
        ("2026-11-23T15:00", 3600, True, "2026-11-23T15:00"),
        ("2026-11-23T15:00", 3601, False, "2026-11-24T09:00"),
        ("2026-11-23T16:00", 0, False, "2026-11-24T09:00"),
        ("2026-11-23T09:00", 7 * 3600, True, "2026-11-23T09:00"),
        ("2026-11-23T09:00", 7 * 3600 + 1, False, None),
    ],
)
def test_what_fits_before_the_window_closes(now: str, seconds: float, fits: bool, next_fit: str | None) -> None:
    office = calendar("UTC", OFFICE)
    assert office.fits(moment(now), seconds) == fits
    assert office.next_fit(moment(now), seconds) == (moment(next_fit) if next_fit else None)


def test_what_fits_is_measured_in_real_time() -> None:
    """Four hours of the wall clock are three when clocks are set forward."""
    night = calendar("Europe/Berlin", {"from": "01:00", "to": "05:00"})
    assert night.fits(moment("2026-03-29T00:00"), 3 * 3600)
    assert not night.fits(moment("2026-03-29T00:00"), 3 * 3600 + 1)
    assert night.fits(moment("2026-10-24T23:00"), 5 * 3600)


def test_anything_fits_without_a_window() -> None:
    assert Calendar(None).fits(moment("2026-11-23"), 1e6)


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        ("2026-11-23T09:00", ""),
        ("2026-11-23T16:00", "outside the hours Mon, Tue, Wed, Thu 09:00-16:00"),
        ("2026-12-24T10:00", "freeze 12-20 to 01-06, every year (year end)"),
        ("2026-11-24T10:00", "freeze 2026-11-24"),
    ],
)
def test_why_it_is_closed(now: str, reason: str) -> None:
    freezes = [{"from": "12-20", "to": "01-06", "why": "year end"}, "2026-11-24"]
    assert calendar("UTC", OFFICE, not_=freezes).closed_because(moment(now)) == reason


ZONES = st.sampled_from(
    [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Cairo",
        "Asia/Kathmandu",
        "Pacific/Apia",
        "America/St_Johns",
    ]
)
TIMES = st.builds(lambda minutes: f"{minutes // 60:02}:{minutes % 60:02}", st.integers(0, 24 * 60))
# Around changes of clocks, the leap day and the end of a year, and anywhere.
MOMENTS = st.builds(
    lambda base, minutes: base + timedelta(minutes=minutes),
    st.sampled_from(
        [
            *(datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC), datetime(2026, 4, 23, tzinfo=UTC)),
            *(datetime(2026, 10, 3, tzinfo=UTC), datetime(2026, 4, 4, tzinfo=UTC), datetime(2026, 3, 7, tzinfo=UTC)),
            *(
                datetime(2028, 2, 28, tzinfo=UTC),
                datetime(2026, 12, 30, tzinfo=UTC),
                datetime(2011, 12, 29, tzinfo=UTC),
            ),
            *(datetime(2026, 10, 28, tzinfo=UTC), datetime(2026, 10, 31, tzinfo=UTC)),
            *(datetime(2010, 11, 6, 12, tzinfo=UTC), datetime(2026, 3, 28, 18, tzinfo=UTC)),
        ]
    ),
    st.integers(0, 2 * 24 * 60),
)
HOURS = st.builds(
    lambda days, begin, end: {"days": days, "from": begin, "to": end},
    st.lists(st.sampled_from(DAYS), min_size=1, unique=True),
    TIMES.filter(lambda text: text != "24:00"),
    TIMES,
).filter(lambda hours: hours["from"] != hours["to"])
FREEZES = st.sampled_from(
    [
        *("2026-03-29", "03-29", "2010-11-07", "10-25", "02-29", "12-31", "2026-04-24", "2026-10-04", "2026-10-29"),
        *(
            {"from": "12-31", "to": "01-01"},
            {"from": "2026-10-24", "to": "2026-10-25"},
            {"from": "2026-03-08", "to": "2026-03-08"},
        ),
    ]
)
WINDOWS = st.builds(
    lambda zone, hours, freezes: calendar(zone, *hours, not_=freezes),
    ZONES,
    st.lists(HOURS, max_size=3),
    st.lists(FREEZES, max_size=2),
)


def naive_is_open(window: Window, at: datetime) -> bool:
    """The definition: what a clock on the wall shows."""
    wall = at.astimezone(ZoneInfo(window.zone))
    if any(naive_covers(freeze.first, freeze.last, wall.date()) for freeze in window.not_):
        return False
    shown = wall.strftime("%H:%M")
    today, yesterday = DAYS[wall.weekday()], DAYS[(wall.weekday() + 6) % 7]
    for hours in window.open:
        if hours.from_ < hours.to:
            if today in hours.days and hours.from_ <= shown < hours.to:
                return True
        elif (today in hours.days and shown >= hours.from_) or (yesterday in hours.days and shown < hours.to):
            return True
    return not window.open


def naive_covers(first: str, last: str, day: date) -> bool:
    """Day by day from the first to the last."""
    if len(first) == 10:
        return date.fromisoformat(first) <= day <= date.fromisoformat(last)
    current = first
    for _ in range(367):
        if current == day.strftime("%m-%d"):
            return True
        if current == last:
            return False
        current = (date.fromisoformat(f"2000-{current}") + timedelta(days=1)).strftime("%m-%d")
    raise AssertionError("the range has no end")


@settings(max_examples=10, deadline=None)
@given(WINDOWS, MOMENTS)
def test_openings_are_those_of_a_reference_that_asks_minute_by_minute(calendar_: Calendar, now: datetime) -> None:
    """Over 36 hours: an opening lies in the window and in no freeze, and between two of them nothing is open."""
    end = now + timedelta(hours=36)
    openings = [opening for opening in islice(calendar_.openings(now), 2 * 24 * 60) if opening.begin < end]
    current = now
    while current < end:
        found = any(opening.contains(current) for opening in openings)
        assert found == naive_is_open(calendar_.window, current) == calendar_.is_open(current), current
        current += _MINUTE


@settings(max_examples=40, deadline=None)
@given(WINDOWS, MOMENTS)
def test_openings_are_in_order_and_apart(calendar_: Calendar, now: datetime) -> None:
    previous_end: datetime | None = None
    for opening in islice(calendar_.openings(now), 10):
        assert opening.begin >= now
        assert previous_end is None or opening.begin > previous_end
        assert naive_is_open(calendar_.window, opening.begin)
        if opening.end is None:
            return
        assert opening.begin < opening.end
        assert not naive_is_open(calendar_.window, opening.end)
        assert naive_is_open(calendar_.window, opening.end - _MINUTE) or opening.end - opening.begin < _MINUTE
        previous_end = opening.end


@settings(max_examples=40, deadline=None)
@given(WINDOWS, MOMENTS, st.integers(0, 6 * 3600))
def test_what_fits_stays_in_the_window(calendar_: Calendar, now: datetime, seconds: int) -> None:
    at = calendar_.next_fit(now, seconds)
    if at is None:
        return
    assert calendar_.fits(at, seconds)
    for passed in range(0, seconds, 60):
        assert naive_is_open(calendar_.window, at + timedelta(seconds=passed))
