"""How the end of a run is stored in the state of its day, whatever else happens at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.app.day import entry as day_entry
from chaos.app.day.entry import DayEntry, recover_runs
from chaos.app.day.session import DaySession
from chaos.app.day.stop import DayHalted
from chaos.core.action import ProofStatus, Undo
from chaos.core.errors import Exit, Refused
from chaos.core.result import RunResult, StepResult
from chaos.core.store import run_directory
from chaos.core.store.journal import Journal
from chaos.core.store.run_directory import RunInfo
from chaos.core.verdict import Status
from chaos.engine.stop import Interrupted, StopRequest
from chaos.gameday.state import DayState, DayStatus, RunKey
from chaos.gameday.transitions import StateConflict, before_fault, begin, finish, halt, take_over
from tests.kit.day_session import Day
from tests.kit.recorded_days import judged, result

BEGIN = 1_796_115_600.0  # 2026-12-01 09:00 UTC
ONE = RunKey("one", "", 1)
NODES = {"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": True}
STEP = StepResult("cordon", "cordon", "worker-1", BEGIN, BEGIN + 1, "sent", "PATCH", ProofStatus.PROVEN, "it is")
HELD = result(judged("it holds", Status.HELD), steps=(STEP,))
ABORTED = result(
    status=Status.INCONCLUSIVE,
    exit_code=int(Exit.INCONCLUSIVE),
    headline="aborted: nodes-ready",
    abort=(replace(judged("nodes-ready", Status.VIOLATED, "two are not Ready"), assertion="nodes-ready"),),
)
STOPPED = result(status=Status.INCONCLUSIVE, exit_code=int(Exit.INCONCLUSIVE), headline="aborted: asked to stop")
SIGNALLED = result(status=Status.INCONCLUSIVE, exit_code=128 + 15, headline="interrupted: signal 15")


@contextmanager
def connected(day: Day) -> Iterator[Any]:
    yield day.session.connection


def execute(day: Day, monkeypatch: pytest.MonkeyPatch, act: Callable[[Any], RunResult]) -> Any:
    """The first run of the day, with ``act`` in place of the experiment: it gets the run's owner."""

    def run(_request: object, _connection: object, _progress: object, owner: Any) -> Any:
        owner.begin(Path(), StopRequest())
        return SimpleNamespace(result=act(owner), report=Path("report.html"))

    monkeypatch.setattr(day_entry, "connect_cluster", lambda _: connected(day))
    monkeypatch.setattr(day_entry, "run", run)
    return DayEntry(day.session, day.session.find(ONE)).execute()


def injected(outcome: RunResult) -> Callable[[Any], RunResult]:
    def act(owner: Any) -> RunResult:
        owner.before_fault()
        return outcome

    return act


def stored(day: Day) -> DayState:
    state = day.session.store.read()
    assert state is not None
    return state


def test_a_verdict_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN)
    execute(day, monkeypatch, injected(HELD))
    assert [run.verdict for run in stored(day).runs] == ["held", None]


def test_the_day_is_over_with_its_last_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    execute(day, monkeypatch, injected(HELD))
    assert stored(day).status is DayStatus.FINISHED


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_an_abort_condition_halts_the_day_also_in_its_last_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    day = Day(tmp_path, names, BEGIN, abort=[NODES])
    with pytest.raises(DayHalted, match="game day halted by an abort condition: abort condition nodes-ready: two"):
        execute(day, monkeypatch, injected(ABORTED))
    state = stored(day)
    assert state.runs[0].verdict == "inconclusive"
    assert state.status is (DayStatus.FINISHED if names == ["one"] else DayStatus.HALTED)
    assert [halted.by for halted in state.halts] == ["an abort condition"]


def test_a_halt_by_an_abort_condition_is_stored_no_later_than_the_end_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the two, the day would go on."""
    day = Day(tmp_path, ["one", "two"], BEGIN, abort=[NODES])
    seen: list[bool] = []

    def inspect() -> None:
        state = day.session.store.read()
        if state and (run := state.find(ONE)) and run.verdict:
            seen.append(state.halt is not None)

    def act(owner: Any) -> RunResult:
        owner.before_fault()
        day.kube.after_write = inspect
        return ABORTED

    with pytest.raises(DayHalted):
        execute(day, monkeypatch, act)
    assert seen
    assert all(seen)


@pytest.mark.parametrize(("outcome", "verdict"), [(HELD, "held"), (STOPPED, "inconclusive")])
def test_a_signal_after_the_last_verdict_ends_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: RunResult, verdict: str
) -> None:
    """Signals are the run's until it has ended; one that comes too late for its verdict is for the day."""
    day = Day(tmp_path, ["one", "two"], BEGIN)

    def act(owner: Any) -> RunResult:
        owner.before_fault()
        owner._stop.signum = 15
        return outcome

    with pytest.raises(Interrupted):
        execute(day, monkeypatch, act)
    assert stored(day).runs[0].verdict == verdict


def test_a_halt_that_comes_right_before_the_fault_gives_the_run_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = Day(tmp_path, ["one"], BEGIN)

    def act(owner: Any) -> RunResult:
        day.session.store.update(lambda state: halt(state or day.session.state, "ada", "pager", BEGIN))
        with pytest.raises(StateConflict, match="halted by ada: pager"):
            owner.before_fault()
        return STOPPED

    with pytest.raises(DayHalted):
        execute(day, monkeypatch, act)
    run = stored(day).find(ONE)
    assert run is not None
    assert (run.status, run.attempts, run.may_have_injected) == ("pending", 0, False)


def test_a_skip_whose_answer_is_lost_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN)
    monkeypatch.setattr("chaos.app.day.store._RETRY_SECONDS", 0.0)

    def act(_: Any) -> RunResult:
        day.kube.lost = 1
        raise Refused("preflight refused")

    assert execute(day, monkeypatch, act) is None
    assert [(run.status, run.reason) for run in stored(day).runs] == [("skipped", "preflight refused"), ("pending", "")]


CHANGES: list[Callable[[DaySession], object]] = [
    lambda session: session.update(lambda state: finish(state, ONE, "r1", "held", session.epoch, BEGIN)),
    lambda session: session.update(lambda state: before_fault(state, ONE, "r1", session.epoch)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_that_has_read_the_state_of_its_successor_still_changes_nothing(
    tmp_path: Path, change: Callable[[DaySession], object]
) -> None:
    """A gate reads the state for approvals, a refresh for halts: neither makes it the holder again."""
    day = Day(tmp_path, ["one"], BEGIN)
    session = day.session
    session.update(lambda state: begin(state, ONE, "r1", session.epoch, BEGIN))
    session.store.update(lambda state: take_over(state or session.state, "other"))
    for attempt in (lambda session: session.refresh(), change):
        with pytest.raises(StateConflict, match="was taken over by other"):
            attempt(session)


def left_running(day: Day, run: str, *, has_fault: bool, outcome: RunResult | None) -> Path:
    """A former process has died after its run ended, before it stored that; the directory of the run."""
    session = day.session
    session.update(lambda state: begin(state, ONE, run, session.epoch, BEGIN))
    if has_fault:
        session.update(lambda state: before_fault(state, ONE, run, session.epoch))
    directory = run_directory.create(session.request.reports, "one", BEGIN)
    run_directory.save(directory, run_directory.RUN, RunInfo(run, "one", BEGIN, {}))
    if outcome:
        run_directory.save(directory, run_directory.RESULT, outcome)
    return directory


JOURNALS: list[tuple[list[str], bool, str]] = [
    ([], True, "pending"),
    (["workload"], True, "pending"),
    (["workload", "cordon"], True, "done"),
    (["cordon"], True, "done"),
    ([], False, "done"),  # a copy from the cluster, which may have had more
]


@pytest.mark.parametrize(("steps", "has_plan", "status"), JOURNALS)
def test_the_own_journal_of_a_run_proves_whether_there_was_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[str], has_plan: bool, status: str
) -> None:
    """Killed between the note that the fault comes next and the fault, it is repeated."""
    day = Day(tmp_path, ["one", "two"], BEGIN)
    directory = left_running(day, "r1", has_fault=True, outcome=None)
    if has_plan:
        (directory / run_directory.PLAN).write_text("{}")
    with Journal(directory) as journal:
        for step in steps:
            journal.mark_undone(journal.record_intent(step, step, "worker-1", Undo(), BEGIN), "proven")
    monkeypatch.setattr("chaos.app.day.entry._undo", lambda *_: None)
    recover_runs(day.session)
    assert stored(day).runs[0].status == status


LEFT = [
    (True, HELD, "done", "held", False),
    (True, ABORTED, "done", "inconclusive", True),
    (True, SIGNALLED, "done", "interrupted", False),
    (True, None, "done", "interrupted", False),
    (False, None, "pending", None, False),
    (False, SIGNALLED, "pending", None, False),  # a signal, and then a kill, before the fault
    (False, STOPPED, "pending", None, False),
]


@pytest.mark.parametrize(("has_fault", "outcome", "status", "verdict", "halts"), LEFT)
def test_a_run_whose_end_was_not_stored(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_fault: bool,
    outcome: RunResult | None,
    status: str,
    verdict: str | None,
    halts: bool,
) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN, abort=[NODES])
    left_running(day, "r1", has_fault=has_fault, outcome=outcome)
    monkeypatch.setattr("chaos.app.day.entry._undo", lambda *_: None)
    recover_runs(day.session)
    state = stored(day)
    assert (state.runs[0].status, state.runs[0].verdict, state.halt is not None) == (status, verdict, halts)


def test_a_result_with_steps_outweighs_a_journal_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    directory = left_running(day, "r1", has_fault=True, outcome=HELD)
    (directory / run_directory.PLAN).write_text("{}")
    Journal(directory).close()
    monkeypatch.setattr("chaos.app.day.entry._undo", lambda *_: None)
    recover_runs(day.session)
    assert stored(day).runs[0].verdict == "held"


def test_a_signal_before_the_fault_gives_the_run_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    with pytest.raises(Interrupted):
        execute(day, monkeypatch, lambda _: SIGNALLED)
    assert stored(day).runs[0].status == "pending"
