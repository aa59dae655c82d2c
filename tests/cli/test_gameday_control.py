"""``gameday halt`` and ``resume`` on a cluster with several days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.app.day.store import DayStore, existing
from chaos.cli.gameday import control
from chaos.cli.gameday.control import HaltOptions, halt_days, resume_day
from chaos.cluster.errors import KubeUnreachable
from chaos.core.errors import NodefallError
from chaos.gameday.state import DayState
from chaos.gameday.transitions import end, halt
from tests.kit.day_session import Day

HALT = HaltOptions("pager", "ada", "0s")


@pytest.fixture(name="stores")
def _stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Day, DayStore, DayStore]:
    """A cluster with the days ``days`` and ``weekly``, none of which has begun."""
    day = Day(tmp_path, ["one"], 1000.0)
    weekly = DayStore(day.kube, "kube-system", "weekly", day.clock.now)
    weekly.update(lambda _: replace(day.session.state, gameday="weekly"))

    @contextmanager
    def connect(_: Any) -> Iterator[Any]:
        yield day.session.connection

    monkeypatch.setattr(control, "connect_cluster", connect)
    monkeypatch.setattr(control, "load_cluster_inventory", lambda _: None)
    return day, day.session.store, weekly


def state_of(store: DayStore) -> DayState:
    state = store.read()
    assert state
    return state


def test_one_day_that_cannot_be_halted_keeps_no_other_from_being_halted(stores: tuple[Day, DayStore, DayStore]) -> None:
    day, first, second = stores
    failures = [KubeUnreachable("refused", "no answer")]

    def fail_once() -> None:
        if failures:
            raise failures.pop()

    day.kube.before_write = fail_once
    with pytest.raises(NodefallError, match="game day days was not halted: no answer"):
        halt_days(None, None, HALT)
    assert [bool(state_of(store).halt) for store in (first, second)] == [False, True]


def test_a_day_that_was_ended_is_not_one_to_be_resumed(stores: tuple[Day, DayStore, DayStore]) -> None:
    _, first, second = stores
    first.update(existing(lambda state: end(state, "ada", "enough", 1.0)))
    second.update(existing(lambda state: halt(state, "ada", "pager", 1.0)))
    assert resume_day(None, None, "bob", "it was something else") == 0
    assert [bool(state_of(store).halt) for store in (first, second)] == [True, False]
