"""What is seen of a cluster of a fleet, and where it is by that."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec.structs import replace

from chaos.core.labels import JobView
from chaos.gameday.fleet_state import Observation, Phase, assess, day_verdict, progress_of
from chaos.gameday.state import DayRun, DayState, Halt, RunKey, RunStatus, Verdict, Waiting

PLAN, OTHER_PLAN = "a" * 64, "b" * 64
HALT = Halt("ada", 2.0, "pager")


def run(entry: str = "one", verdict: Verdict | None = None, status: RunStatus = RunStatus.PENDING) -> DayRun:
    status = RunStatus.DONE if verdict else status
    identity = "r-" + entry if status in (RunStatus.DONE, RunStatus.RUNNING) else ""
    return DayRun(RunKey(entry, "", 1), 1, "stop", status, identity, verdict=verdict)


def state(*runs: DayRun, **changes: Any) -> DayState:
    return replace(DayState("d1", "days", PLAN, 1, 1.0, "by-entry", 1, "pod", 1, runs), **changes)


def job(status: Literal["active", "complete", "failed"] = "active", **changes: Any) -> JobView:
    values: dict[str, Any] = {"name": "j", "uid": "u", "day": "d1", "plan_hash": PLAN, "status": status} | changes
    return JobView(**values)


FRESH = state(run())
RUNNING = state(run(status=RunStatus.RUNNING))
HELD = state(run(verdict="held"))
WAITING = state(run(), waiting=Waiting("the window for one (1)", "it is closed", 1.0))
CUT = state(run(status=RunStatus.RUNNING), run("two"), halts=(HALT,))
HALTED = state(run(verdict="held"), run("two"), halts=(HALT,))

CASES: list[tuple[str, Observation, Phase, str]] = [
    ("unreadable", Observation(error="timed out"), Phase.UNKNOWN, "timed out"),
    ("unreadable, whatever else", Observation("timed out", job("complete"), HELD), Phase.UNKNOWN, "timed out"),
    ("nothing", Observation(), Phase.IDLE, ""),
    ("only an approval", Observation(state=FRESH), Phase.IDLE, ""),
    ("a finished day before", Observation(state=replace(HELD, day="d0")), Phase.IDLE, ""),
    ("approved for another day", Observation(state=replace(FRESH, day="d0")), Phase.IDLE, ""),
    ("another day goes on", Observation(state=replace(RUNNING, day="d0")), Phase.FOREIGN, "day d0 of days is not"),
    ("another day is halted", Observation(state=replace(HALTED, day="d0")), Phase.FOREIGN, "day d0 of days is not"),
    ("another plan goes on", Observation(state=replace(RUNNING, plan_hash=OTHER_PLAN)), Phase.FOREIGN, "another plan"),
    ("another plan is over", Observation(state=replace(HELD, plan_hash=OTHER_PLAN)), Phase.FOREIGN, "another plan"),
    ("another plan was approved", Observation(state=replace(FRESH, plan_hash=OTHER_PLAN)), Phase.IDLE, ""),
    ("a Job for another day", Observation(job=job(day="d0")), Phase.FOREIGN, "its Job is for day d0"),
    ("a Job for another plan", Observation(job=job(plan_hash=OTHER_PLAN)), Phase.FOREIGN, "plan bbbbbbbbbbbb"),
    ("a Job", Observation(job=job(reason="ErrImagePull")), Phase.STARTING, "ErrImagePull"),
    ("a Job after an approval", Observation(job=job(), state=FRESH), Phase.STARTING, ""),
    ("a Job that waits for its window", Observation(job=job(), state=WAITING), Phase.RUNNING, "the window for one (1)"),
    ("a Job after the day before", Observation(job=job(), state=replace(HELD, day="d0")), Phase.STARTING, ""),
    ("a Job that was refused", Observation(job=job("failed", reason="error: no")), Phase.REFUSED, "error: no"),
    ("a Job that did nothing", Observation(job=job("complete")), Phase.REFUSED, "without having begun"),
    ("halted before it began", Observation(job=job("failed"), state=state(run(), halts=(HALT,))), Phase.HALTED, "ada"),
    ("at work", Observation(job=job(), state=RUNNING), Phase.RUNNING, "0 of 1 done, one (1) is running"),
    ("at work on the end", Observation(job=job(), state=HELD), Phase.RUNNING, "1 of 1 done"),
    ("at work on the undo", Observation(job=job(), state=HALTED), Phase.RUNNING, "halted by ada"),
    ("over", Observation(job=job("complete"), state=HELD), Phase.FINISHED, ""),
    ("over, and cleaned", Observation(state=HELD), Phase.FINISHED, ""),
    ("over, though its Job failed", Observation(job=job("failed"), state=HELD), Phase.FINISHED, ""),
    ("halted", Observation(job=job("failed"), state=HALTED), Phase.HALTED, "halted by ada: pager"),
    (
        "halted, and its undo failed",
        Observation(job=job("failed", reason="exit code 3"), state=CUT),
        Phase.STUCK,
        "code 3",
    ),
    ("died", Observation(job=job("failed", reason="exit code 3"), state=RUNNING), Phase.STUCK, "exit code 3"),
    ("left alone", Observation(state=RUNNING, pending_undo=("r-one",)), Phase.STUCK, "pending undo: r-one"),
]


@pytest.mark.parametrize(("observation", "phase", "reason"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_where_a_cluster_is(observation: Observation, phase: Phase, reason: str) -> None:
    found = assess(observation, "d1", PLAN)
    assert found.phase is phase
    assert reason in found.reason
    assert found.is_at_work == (phase in (Phase.UNKNOWN, Phase.STARTING, Phase.RUNNING))


def test_every_phase_has_a_case() -> None:
    assert {case[2] for case in CASES} == set(Phase)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["held", "held"], "held"),
        (["held", "violated"], "violated"),
        (["held", "inconclusive"], "inconclusive"),
        (["held", "interrupted"], "inconclusive"),
    ],
)
def test_the_verdict_of_a_cluster_is_that_of_its_day(verdicts: list[Verdict], expected: Verdict) -> None:
    assert day_verdict(state(*(run(str(n), verdict) for n, verdict in enumerate(verdicts)))) == expected


def test_an_entry_that_was_skipped_is_not_passed() -> None:
    assert day_verdict(state(run(verdict="held"), run("two", status=RunStatus.SKIPPED))) == "inconclusive"
    assert day_verdict(state(run(status=RunStatus.SKIPPED))) == "inconclusive"


def test_progress_says_what_the_day_waits_for() -> None:
    waiting = Waiting("the window for two (1)", "it is closed", 1.0)
    text = progress_of(state(run(verdict="held"), run("two"), waiting=waiting))
    assert text == "1 of 2 done, waiting for the window for two (1): it is closed"
