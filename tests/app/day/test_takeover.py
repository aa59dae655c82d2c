"""Runs that a former process has left behind, whose result is there."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from chaos.app.day.entry import recover_runs
from chaos.app.day.stop import DayHalted
from chaos.core.action import Undo
from chaos.core.errors import Exit
from chaos.core.result import RunResult
from chaos.core.store import run_directory
from chaos.core.store.journal import Journal
from chaos.core.store.run_directory import RunInfo
from chaos.core.verdict import Status, Verdict
from chaos.gameday.state import DayRun, RunKey
from chaos.gameday.transitions import before_fault, begin
from tests.kit.day_session import Day
from tests.kit.recorded_days import result

BEGIN = datetime(2026, 11, 23, 10, 0, tzinfo=UTC).timestamp()  # a Monday
ONE = RunKey("one", "", 1)


def recovered(folder: Path, code: int, status: Status, *, has_fault: bool) -> DayRun:
    """The first run after its process was killed with this result on disk, and nothing left to be undone."""
    day = Day(folder, ["one", "two"], BEGIN)
    recover(day, result(exit_code=code, status=status), has_fault=has_fault)
    return day.session.find(ONE)


def recover(day: Day, made: RunResult, *, has_fault: bool = True) -> None:
    session = day.session
    session.update(partial(begin, key=ONE, run="one-1", epoch=1, now=BEGIN))
    if has_fault:
        session.update(partial(before_fault, key=ONE, run="one-1", epoch=1))
    directory = run_directory.create(session.request.reports, "one", BEGIN)
    run_directory.save(directory, run_directory.RUN, RunInfo("one-1", "one", BEGIN, {}, by="me"))
    run_directory.save(directory, run_directory.RESULT, made)
    with Journal(directory) as journal:
        journal.mark_undone(journal.record_intent("cordon", "cordon", "worker-1", Undo(), BEGIN), "it was seen")
    recover_runs(session)


@pytest.mark.parametrize(
    ("code", "status", "verdict"),
    [
        (Exit.HELD, Status.HELD, "held"),
        (Exit.VIOLATED, Status.VIOLATED, "violated"),
        (Exit.INCONCLUSIVE, Status.INCONCLUSIVE, "inconclusive"),
        (Exit.UNDO_PENDING, Status.HELD, "held"),
        (Exit.UNDO_PENDING, Status.VIOLATED, "violated"),
        (Exit.UNDO_PENDING, Status.INCONCLUSIVE, "interrupted"),
        (Exit.SIGTERM, Status.INCONCLUSIVE, "interrupted"),
    ],
)
def test_the_verdict_of_a_run_with_a_result(tmp_path: Path, code: Exit, status: Status, verdict: str) -> None:
    """An undo that was pending hides no violation, after which the day stops."""
    run = recovered(tmp_path, int(code), status, has_fault=True)
    assert (str(run.status), run.verdict) == ("done", verdict)


@pytest.mark.parametrize("code", [Exit.REFUSED, Exit.INCONCLUSIVE, Exit.SIGTERM])
def test_a_run_without_a_fault_is_repeated_whatever_its_result(tmp_path: Path, code: Exit) -> None:
    run = recovered(tmp_path, int(code), Status.INCONCLUSIVE, has_fault=False)
    assert (str(run.status), run.verdict) == ("pending", None)


@pytest.mark.parametrize("code", [Exit.INCONCLUSIVE, Exit.UNDO_PENDING])
def test_an_abort_condition_in_a_run_that_others_have_left_behind_halts_the_day(tmp_path: Path, code: Exit) -> None:
    """Its process did not get as far as that, or its undo came first."""
    nodes = {"assert": "nodes-ready", "name": "nodes", "with": {"not-ready-at-most": 1}, "always": True}
    day = Day(tmp_path, ["one", "two"], BEGIN, abort=[nodes])
    violated = Verdict("nodes", "nodes-ready", Status.VIOLATED, "two are not Ready")
    recover(day, result(exit_code=int(code), status=Status.INCONCLUSIVE, abort=(violated,)))
    assert [(halt.by, halt.reason) for halt in day.session.state.halts] == [
        ("an abort condition", "abort condition nodes: two are not Ready")
    ]
    with pytest.raises(DayHalted):
        day.session.stop.check()
