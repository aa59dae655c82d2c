"""Whether a scheduled day begins, after the days before it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from chaos.app.day.document import LoadedGameDay, load_game_day, new_state, refuse_unless_due
from chaos.core.errors import Refused
from chaos.gameday.state import DayState, RunKey
from chaos.gameday.transitions import before_fault, begin, finish, skip
from tests.kit.gamedays import write_day

ONE = RunKey("one", "", 1)
FIRST_TUESDAY = {"cron": "0 10 * * TUE#1", "missed": "run"}


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def monthly(folder: Path) -> LoadedGameDay:
    return load_game_day(write_day(folder, ["one"], schedule=FIRST_TUESDAY))


def state(day: LoadedGameDay, name: str, created: str) -> DayState:
    return new_state(day, "", name, 7, at(created), ())


def held(state: DayState, begun: str) -> DayState:
    running = before_fault(begin(state, ONE, "r1", 0, at(begun)), ONE, "r1", 0)
    return finish(running, ONE, "r1", "held", 0, at(begun) + 60.0)


def test_a_start_is_not_made_up_for_by_a_second_day(tmp_path: Path) -> None:
    """A day exists from its approval on, which may be before its start: what counts is when it began."""
    day = monthly(tmp_path)
    approved = state(day, "december", "2026-11-30T09:00")
    second_tuesday = state(day, "later", "2026-12-08T10:00")
    for ended in (
        held(approved, "2026-12-01T10:00"),
        skip(approved, ONE, "a gate", 0, at("2026-12-01T10:00")),
    ):
        with pytest.raises(Refused, match="no scheduled start is due; the next one is at 2027-01-05T10:00"):
            refuse_unless_due(day, ended, second_tuesday)


def test_a_start_that_was_missed_is_made_up_for(tmp_path: Path) -> None:
    day = monthly(tmp_path)
    ended = held(state(day, "november", "2026-11-03T09:00"), "2026-11-03T10:00")
    refuse_unless_due(day, ended, state(day, "later", "2026-12-08T10:00"))
    with pytest.raises(Refused, match="no scheduled start is due"):
        refuse_unless_due(day, ended, state(day, "later", "2026-11-10T10:00"))


def test_a_day_under_way_goes_on_at_any_time(tmp_path: Path) -> None:
    day = monthly(tmp_path)
    begun = begin(state(day, "november", "2026-11-03T09:00"), ONE, "r1", 0, at("2026-11-03T10:00"))
    refuse_unless_due(day, begun, state(day, "later", "2026-11-10T10:00"))
