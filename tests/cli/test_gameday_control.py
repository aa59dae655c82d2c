"""``gameday halt`` and ``resume`` on a cluster with several days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.app.day.document import load_game_day
from chaos.app.day.store import DayStore, existing
from chaos.cli.gameday import control
from chaos.cli.gameday.control import ApproveOptions, HaltOptions, approve, halt_days, resume_day
from chaos.cluster.errors import KubeUnreachable
from chaos.core.errors import NodefallError, Refused
from chaos.gameday.state import DayState
from chaos.gameday.transitions import end, halt
from tests.kit.day_session import Day
from tests.kit.gamedays import write_cordon, write_day

HALT = HaltOptions("pager", "ada", "0s")
OF_ENTRY = [{"kind": "approval", "by": ["grace"]}]
ENTRIES = [{"experiment": "one.yaml"}, {"experiment": "two.yaml", "gates": OF_ENTRY}]
OF_DAY = [{"kind": "approval", "by": ["ada"]}, {"kind": "no-other-run"}]


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


def refusal(day: Path, *, by: str = "ada", entry: str = "", plan_hash: str = "") -> Refused:
    with pytest.raises(Refused) as refused:
        approve(ApproveOptions(day, str(day.parent / "no-cluster.yaml"), entry, by, plan_hash, ""))
    return refused.value


@pytest.mark.parametrize(
    ("by", "entry", "message", "hint"),
    [
        ("mallory", "", "no gate of the day asks for mallory", "approve as one of them with --by: ada, grace"),
        ("mallory", "two", "no gate of entry two asks for mallory", "approve as one of them with --by: ada, grace"),
        ("grace", "one", "no gate of entry one asks for grace", "approve as one of them with --by: ada"),
        ("Ada", "", "no gate of the day asks for Ada", "approve as one of them with --by: ada, grace"),
        ("ada", "tow", "has no entry 'tow'", "did you mean 'two'?"),
    ],
)
def test_a_person_whom_no_gate_names(tmp_path: Path, by: str, entry: str, message: str, hint: str) -> None:
    day = write_day(tmp_path, ["one", "two"], gates=OF_DAY, entries=ENTRIES)
    error = refusal(day, by=by, entry=entry)
    assert message in error.message
    assert error.hint == hint


def test_a_day_that_asks_for_no_approval(tmp_path: Path) -> None:
    error = refusal(write_day(tmp_path, ["one"]))
    assert (error.hint, "no gate of the day asks for ada" in error.message) == ("no gate asks for an approval", True)


def test_the_hash_of_an_older_plan(tmp_path: Path) -> None:
    day = write_day(tmp_path, ["one"], gates=OF_DAY)
    older = load_game_day(day).hash
    write_cordon(tmp_path / "one.yaml", lasts="41s")
    newer = load_game_day(day).hash
    for wrong in (older, older[:12], f"{newer}0", newer.upper(), "0000"):
        error = refusal(day, plan_hash=wrong)
        assert error.message == f"not approved: the plan of {day} is {newer[:12]}, not {wrong[:12]}"
        assert "approve the hash that it prints" in (error.hint or "")
