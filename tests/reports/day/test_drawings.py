"""The calendar and the timeline of a day."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from chaos.gameday.state import Halt, PastWait
from chaos.reports.day.drawings import (
    MAX_ROWS,
    CalendarRow,
    _Axis,
    calendar_rows,
    render_calendar,
    render_timeline,
    utc_offset,
)
from tests.kit.recorded_days import BEGIN, WINDOW, pending, ran, record, skipped, view


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def rows(*begins: str, window: Any = WINDOW, took: float = 120.0) -> tuple[CalendarRow, ...]:
    runs = [ran(f"e{n}", at=at(text), ended=at(text) + took) for n, text in enumerate(begins)]
    return calendar_rows(view(record(*runs, window=window, created=at(begins[0]))))


def hours(row: CalendarRow) -> list[tuple[float, float]]:
    """Open parts, in hours since its start."""
    return [(round(span.begin * row.hours, 2), round(span.end * row.hours, 2)) for span in row.open]


NIGHT = {"zone": "Europe/Berlin", "open": [{"from": "22:00", "to": "04:00"}]}


@pytest.mark.parametrize(
    ("begin", "window", "length", "expected"),
    [
        ("2026-12-01T09:00", WINDOW, 24, [(9, 16)]),  # a Tuesday
        ("2026-12-02T09:00", WINDOW, 24, []),  # a Wednesday
        ("2026-12-01T09:00", None, 24, [(0, 24)]),
        ("2026-12-01T09:00", NIGHT, 24, [(0, 4), (22, 24)]),
        ("2026-03-29T09:00", NIGHT, 23, [(0, 3), (21, 23)]),  # clocks are set forward at 02:00
        ("2026-10-25T09:00", NIGHT, 25, [(0, 5), (23, 25)]),  # clocks are set back at 03:00
    ],
)
def test_open_hours(begin: str, window: Any, length: float, expected: list[tuple[float, float]]) -> None:
    (row,) = rows(begin, window=window)
    assert row.hours == length
    assert hours(row) == expected


def test_a_freeze_closes_its_date() -> None:
    (row,) = rows("2026-12-24T09:00", window={"not": [{"on": "12-24", "why": "holidays"}]})
    assert row.open == ()
    assert "holidays" in row.freeze


def test_a_run_over_midnight_is_on_both_dates() -> None:
    first, second = rows("2026-12-01T22:30", took=3600.0)  # 23:30 to 00:30 in Berlin
    assert [round(mark.span.begin * 24, 1) for mark in (*first.runs, *second.runs)] == [23.5, 0.0]
    assert [round(mark.span.end * 24, 1) for mark in (*first.runs, *second.runs)] == [24.0, 0.5]


def test_dates_between_two_runs_are_shown_but_not_months() -> None:
    assert [row.day.day for row in rows("2026-12-01T09:00", "2026-12-04T09:00")] == [1, 2, 3, 4]
    assert [row.day.isoformat() for row in rows("2026-01-05T09:00", "2026-12-04T09:00")] == ["2026-01-05", "2026-12-04"]
    many = [f"2026-{month:02d}-{day:02d}T09:00" for month in (1, 6, 12) for day in range(1, 28)]
    assert len(rows(*many)) == MAX_ROWS


@pytest.mark.parametrize(
    ("begin", "window", "text"),
    [
        ("2026-12-01T09:00", WINDOW, "+01:00"),
        ("2026-07-01T09:00", WINDOW, "+02:00"),
        ("2026-12-01T09:00", None, "UTC"),
        ("2026-12-01T09:00", {"zone": "Asia/Kathmandu"}, "+05:45"),
    ],
)
def test_offsets_from_utc(begin: str, window: Any, text: str) -> None:
    made = view(record(ran("a", at=at(begin)), window=window, created=at(begin)))
    assert utc_offset(calendar_rows(made)[0], made.calendar) == text


def test_the_drawing_has_a_mark_for_each_run_and_says_where_clocks_change() -> None:
    made = view(record(ran("a", "violated", at=at("2026-10-25T09:00")), window=NIGHT, created=at("2026-10-25T09:00")))
    drawn = render_calendar(made)
    assert drawn.count('class="run violated"') == 1
    assert drawn.count('class="open"') == 2
    assert "Sun 2026-10-25 +01:00, 25 hours" in drawn


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [(1, 2), (9, 10), (60, 5), (3600, 5), (86400, 9), (30 * 86400, 5), (365 * 86400, 13)],
)
def test_ticks_are_few_and_round(seconds: int, ticks: int) -> None:
    found = _Axis(BEGIN, BEGIN + seconds).ticks()
    assert abs(len(found) - ticks) <= 1
    assert all(BEGIN <= t <= BEGIN + seconds for t in found)
    assert len({later - earlier for earlier, later in pairwise(found)}) <= 1


def test_a_lane_for_each_cluster_with_what_happened_there() -> None:
    drawn = render_timeline(
        view(
            record(
                ran("a"),
                ran("b", "violated", at=BEGIN + 300.0),
                skipped("c", "gate"),
                pending("d"),
                halts=(Halt("ada", BEGIN + 310.0, "pager"),),
                waits=(PastWait("the pause", ("at least 3m",), BEGIN + 120.0, BEGIN + 300.0), PastWait("x", (), BEGIN)),
            ),
            record(ran("a"), cluster="prod"),
        )
    )
    assert re.findall(r'class="(run [a-z]+|wait|halted|date)"', drawn) == [
        *("date", "run held", "date", "wait", "wait", "run held", "run violated", "halted")
    ]
    assert "<title>waits for the pause: at least 3m</title>" in drawn
    assert ">10:00:00</text>" not in drawn
    assert ">09:00:00</text>" in drawn


@pytest.mark.parametrize(
    ("begun", "ended"), [(BEGIN, BEGIN), (BEGIN, BEGIN - 50.0), (BEGIN, 1e300), (-1e300, BEGIN), (BEGIN, None)]
)
def test_clocks_that_were_wrong_do_no_harm(begun: float, ended: float | None) -> None:
    drawn = render_timeline(view(record(ran("a", begun=begun, ended=ended))))
    assert all(-1.0 <= float(x) <= 1001.0 for x in re.findall(r' x[12]?="([^"]*)"', drawn))


def test_a_long_name_is_cut_off_on_its_bar() -> None:
    drawn = render_timeline(view(record(ran("a" * 63), ran("b", at=BEGIN + 300.0), ran("c" * 63, at=BEGIN + 9000.0))))
    assert re.findall(r'class="on-bar">([^<]*)<', drawn) == ["", "", ""]
    drawn = render_timeline(view(record(ran("a" * 200), ran("b", at=BEGIN + 120.0))))
    assert re.findall(r'class="on-bar">([^<]*)<', drawn) == ["a" * 58 + "…", "b"]


def test_nothing_is_drawn_of_a_day_without_times() -> None:
    assert render_timeline(view(record(pending("a")))) == ""
