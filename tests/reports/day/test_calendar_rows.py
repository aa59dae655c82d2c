"""The calendar of a day: open hours of each date, also where clocks change, and the runs in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chaos.reports.day.calendar_rows import MAX_ROWS, CalendarRow, calendar_rows, utc_offset
from chaos.reports.day.calendar_svg import render_calendar
from tests.kit.recorded_days import WINDOW, ran, record, view


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def rows(*begins: str, window: Any = WINDOW, took: float = 120.0) -> tuple[CalendarRow, ...]:
    runs = [ran(f"e{n}", at=at(text), ended=at(text) + took) for n, text in enumerate(begins)]
    return calendar_rows(view(record(*runs, window=window, created=at(begins[0]))))


def hours(row: CalendarRow) -> list[tuple[float, float]]:
    """Open parts, in hours since its begin."""
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
