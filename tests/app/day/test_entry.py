"""How the end of a run is stored in the state of its day. The run itself is a stand-in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.app.day import entry
from chaos.app.day.entry import DayEntry
from chaos.app.day.stop import DayHalted
from chaos.core.errors import Exit, NodefallError, Refused
from chaos.core.result import RunResult
from chaos.core.verdict import Status, Verdict
from chaos.engine.session import RunOwner
from chaos.engine.stop import Interrupted, StopRequest
from chaos.gameday.state import DayRun, DayStatus, RunKey
from tests.kit.day_session import Day
from tests.kit.recorded_days import result

BEGIN = datetime(2026, 11, 23, 10, 0, tzinfo=UTC).timestamp()  # a Monday
ONE = RunKey("one", "", 1)
NODES = {"assert": "nodes-ready", "name": "nodes", "with": {"not-ready-at-most": 1}, "always": True}
VIOLATED = Verdict("nodes", "nodes-ready", Status.VIOLATED, "two are not Ready")
ABORTED = result(exit_code=int(Exit.INCONCLUSIVE), status=Status.INCONCLUSIVE, abort=(VIOLATED,))
During = Callable[[RunOwner, StopRequest], RunResult]


@pytest.fixture(name="run_as")
def _run_as(monkeypatch: pytest.MonkeyPatch) -> Callable[[Day, During], None]:
    """Execute the first run of a day, whose course is ``during``."""

    def execute(day: Day, during: During) -> None:
        @contextmanager
        def connect(_: Any) -> Iterator[Any]:
            yield day.session.connection

        def run(_request: Any, _connection: Any, _progress: Any, owner: RunOwner) -> Any:
            stop = StopRequest()
            owner.begin(Path(), stop)
            return SimpleNamespace(result=during(owner, stop))

        monkeypatch.setattr(entry, "connect_cluster", connect)
        monkeypatch.setattr(entry, "run", run)
        DayEntry(day.session, day.session.find(ONE)).execute()

    return execute


def stored(day: Day) -> DayRun:
    state = day.session.store.read()
    found = state.find(ONE) if state else None
    assert found
    return found


def injected(made: RunResult, meanwhile: Callable[[StopRequest], object] = lambda _: None) -> During:
    def during(owner: RunOwner, stop: StopRequest) -> RunResult:
        owner.before_fault()
        meanwhile(stop)
        return made

    return during


def raising(error: NodefallError, before: Callable[[], object]) -> During:
    def during(*_: Any) -> RunResult:
        before()
        raise error

    return during


def test_a_run_that_held(tmp_path: Path, run_as: Any) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    run_as(day, injected(result()))
    assert (stored(day).verdict, day.session.state.status) == ("held", DayStatus.FINISHED)


@pytest.mark.parametrize("names", [["one"], ["one", "two"]], ids=["the last run", "not the last run"])
def test_an_abort_condition_in_a_run_halts_the_day(tmp_path: Path, run_as: Any, names: list[str]) -> None:
    """Also in the last run of a day, after which nothing is left to be stopped."""
    day = Day(tmp_path, names, BEGIN, abort=[NODES])
    with pytest.raises(DayHalted, match="halted by an abort condition: abort condition nodes: two are not Ready"):
        run_as(day, injected(ABORTED))
    assert stored(day).verdict == "inconclusive"
    assert [halt.by for halt in day.session.state.halts] == ["an abort condition"]


def test_a_halt_by_an_abort_condition_is_stored_no_later_than_the_end_of_its_run(tmp_path: Path, run_as: Any) -> None:
    """Killed between the two, the day would go on."""
    day = Day(tmp_path, ["one", "two"], BEGIN, abort=[NODES])
    seen: list[bool] = []

    def inspect() -> None:
        state = day.session.store.read()
        if state and state.find(ONE) and stored(day).verdict:
            seen.append(state.halt is not None)

    def watch(_: StopRequest) -> None:
        day.kube.after_write = inspect

    with pytest.raises(DayHalted):
        run_as(day, injected(ABORTED, watch))
    assert seen
    assert all(seen)


@pytest.mark.parametrize("code", [Exit.HELD, Exit.INCONCLUSIVE])
def test_a_signal_after_the_last_verdict_ends_the_work(tmp_path: Path, run_as: Any, code: Exit) -> None:
    """Signals are the run's until it has ended; one that comes too late for its verdict is for the day."""
    day = Day(tmp_path, ["one", "two"], BEGIN)
    made = result(exit_code=int(code), status=Status.HELD if code == Exit.HELD else Status.INCONCLUSIVE)
    with pytest.raises(Interrupted):
        run_as(day, injected(made, lambda stop: setattr(stop, "signum", 15)))
    assert stored(day).verdict == ("held" if code == Exit.HELD else "inconclusive")


def test_a_refused_run_is_skipped_although_the_answer_to_that_was_lost(tmp_path: Path, run_as: Any) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN)
    run_as(day, raising(Refused("no steady state"), lambda: setattr(day.kube, "lost", 1)))
    assert (str(stored(day).status), stored(day).reason) == ("skipped", "no steady state")
