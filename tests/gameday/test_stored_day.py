"""Which day a process works on.

How a day ended, as an exit code and in words.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chaos.core.errors import Refused
from chaos.gameday.state import (
    Approval,
    DayRun,
    DayState,
    DayStatus,
    Halt,
    RunKey,
    RunStatus,
    Verdict,
    describe,
    exit_code,
)
from chaos.gameday.stored_day import approve_day, open_day
from chaos.gameday.transitions import approve, before_fault, begin, finish, halt

HASH = "a" * 64
A = RunKey("a", "", 1)


def day(name: str = "mon", holder: str = "me", seed: int = 1, plan: str = HASH) -> DayState:
    runs = (DayRun(A, seed, "stop"), DayRun(RunKey("b", "", 1), seed, "stop"))
    return DayState(name, "weekly", plan, seed, 1.0, "by-entry", 1, holder, 1, runs)


def begun() -> DayState:
    return begin(day(holder="other"), A, "run-1", 1, 2.0)


def finished() -> DayState:
    state = day(holder="other")
    for number, run in enumerate(state.runs):
        state = before_fault(begin(state, run.key, f"r{number}", 1, 1.0), run.key, f"r{number}", 1)
        state = finish(state, run.key, f"r{number}", "held", 1, 2.0)
    return state


def test_the_first_day() -> None:
    assert open_day(None, day(), is_named=False, has_seed=False) == replace(day(), epoch=2)


def test_a_day_that_others_have_begun_goes_on() -> None:
    state = open_day(begun(), day("tue", seed=9), is_named=False, has_seed=False)
    assert (state.day, state.seed, state.holder, state.epoch, state.runs) == ("mon", 1, "me", 2, begun().runs)
    assert open_day(begun(), day(seed=1), is_named=True, has_seed=True).epoch == 2


@pytest.mark.parametrize(
    ("fresh", "is_named", "has_seed", "message"),
    [
        (day("tue"), True, False, "day mon of weekly is not finished"),
        (day(plan="b" * 64), False, False, "the plan of weekly has changed since day mon began: it was aaaaaaaaaaaa"),
        (day(seed=2), False, True, "day mon of weekly began with seed 1"),
    ],
)
def test_another_day_than_the_one_that_has_begun(fresh: DayState, is_named: bool, has_seed: bool, message: str) -> None:
    with pytest.raises(Refused, match=message):
        open_day(begun(), fresh, is_named=is_named, has_seed=has_seed)


def test_a_finished_day_is_only_reported_unless_another_one_is_named() -> None:
    assert finished().status is DayStatus.FINISHED
    assert open_day(finished(), day("tue"), is_named=False, has_seed=False) == finished()
    assert open_day(finished(), day(plan="b" * 64), is_named=True, has_seed=False) == finished()
    state = open_day(finished(), day("tue"), is_named=True, has_seed=False)
    assert (state.day, state.epoch, state.approvals) == ("tue", 2, ())
    assert all(run.status is RunStatus.PENDING for run in state.runs)


def test_a_day_that_is_only_approved_takes_over_a_changed_plan_without_its_approval() -> None:
    approved = approve(day(holder=""), Approval("ada", 1.0, HASH))
    same = open_day(approved, day("tue", seed=5), is_named=False, has_seed=False)
    assert (same.day, same.seed, same.is_approved(["ada"])) == ("mon", 1, True)
    seeded = open_day(approved, day(seed=5), is_named=False, has_seed=True)
    assert (seeded.seed, seeded.runs[0].seed, seeded.is_approved(["ada"])) == (5, 5, True)
    changed = open_day(approved, day("tue", plan="b" * 64), is_named=True, has_seed=False)
    assert (changed.day, changed.plan_hash, changed.is_approved(["ada"])) == ("tue", "b" * 64, False)
    assert (changed.epoch, changed.holder) == (2, "me")
    assert replace(changed, approvals=()) != changed


def test_the_approval_of_a_changed_plan_keeps_a_halt_in_force() -> None:
    """A day that was halted before it has begun stays halted, until somebody resumes it."""
    halted = halt(approve(day(holder=""), Approval("ada", 1.0, HASH)), "bob", "pager", 2.0)
    changed = day("tue", holder="", plan="b" * 64)
    approved = approve_day(halted, changed, Approval("ada", 3.0, "b" * 64), is_named=True)
    assert (approved.day, approved.plan_hash, approved.halt) == ("tue", "b" * 64, halted.halt)
    opened = open_day(approved, day("tue", plan="b" * 64), is_named=True, has_seed=False)
    assert (opened.status, opened.is_approved(["ada"])) == (DayStatus.HALTED, True)


def test_a_new_approval_does_not_resume_a_day_that_was_halted_before_it_began() -> None:
    halted = halt(day(holder=""), "ada", "not this week", 1.0)
    for plan in (HASH, "b" * 64):
        state = approve_day(halted, day(holder="", plan=plan), Approval("grace", 2.0, plan), is_named=False)
        assert (state.status, state.is_approved(["grace"])) == (DayStatus.HALTED, True)
        assert open_day(state, day(plan=plan), is_named=False, has_seed=False).status is DayStatus.HALTED


def ended_day(*ends: Verdict | RunStatus) -> DayState:
    runs = []
    for number, end in enumerate(ends):
        run = DayRun(RunKey(f"e{number}", "", 1), 1, "continue")
        if isinstance(end, RunStatus):
            run = replace(run, status=end, run="r" if end is RunStatus.RUNNING else "")
        else:
            run = replace(run, status=RunStatus.DONE, run=f"r{number}", verdict=end)
        runs.append(run)
    return DayState("mon", "weekly", "a" * 64, 1, 1.0, "by-entry", 1, "me", 1, tuple(runs))


SKIPPED, PENDING, RUNNING = RunStatus.SKIPPED, RunStatus.PENDING, RunStatus.RUNNING


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [
        (ended_day("held", "held"), 0, "finished: 2 held"),
        (ended_day("held", "violated"), 1, "finished: 1 held, 1 violated"),
        (ended_day("violated", PENDING), 1, "is running: 1 violated, 1 pending"),
        (ended_day("held", SKIPPED), 2, "finished: 1 held, 1 skipped"),
        (ended_day("held", "interrupted"), 2, "finished: 1 held, 1 interrupted"),
        (ended_day("inconclusive"), 2, "finished: 1 inconclusive"),
        (ended_day("held", RUNNING), 2, "is running: 1 held, 1 running"),
        (ended_day(PENDING), 2, "is running: 1 pending"),
        (ended_day(SKIPPED, SKIPPED), 4, "finished: 2 skipped"),
        (replace(ended_day("held", PENDING), halts=(Halt("ada", 1.0, ""),)), 2, "halted: 1 held, 1 pending"),
    ],
)
def test_outcomes(state: DayState, code: int, text: str) -> None:
    assert exit_code(state) == code
    assert describe(state) == f"day mon of weekly {text}"
