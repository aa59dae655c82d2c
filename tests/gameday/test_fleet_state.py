"""The state of a fleet: which clusters may begin, and what a violation, a halt and an unknown cluster lead to.

What is seen of a cluster of a fleet, and where it is by that.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec.structs import replace

from chaos.core.errors import Exit
from chaos.core.labels import JobView
from chaos.gameday.fleet_document import Fleet
from chaos.gameday.fleet_state import (
    Observation,
    Phase,
    assess,
    day_verdict,
    end_cluster,
    fleet_day_name,
    fleet_exit_code,
    leave_out,
    matrix,
    new_fleet_state,
    progress_of,
)
from chaos.gameday.state import DayRun, DayState, DayStatus, Halt, RunKey, RunStatus, Verdict, Waiting, startable
from chaos.gameday.stored_day import decode, encode
from chaos.gameday.transitions import StateConflict, begin, halt, take_over

NAMES = ["a", "b", "c", "d"]
PLAN, OTHER_PLAN = "a" * 64, "b" * 64
HALT = Halt("ada", 2.0, "pager")


def fleet(**spec: Any) -> Fleet:
    clusters = [{"name": name, "inventory": f"{name}.yaml"} for name in NAMES]
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Fleet",
        "metadata": {"name": "europe"},
        "spec": {"gameday": "day.yaml", "image": "nodefall@sha256:0", "clusters": clusters} | spec,
    }
    return Fleet.model_validate(document)


def key(name: str) -> RunKey:
    return RunKey("days", name, 1)


def begun(*names: str, **spec: Any) -> DayState:
    found = take_over(new_fleet_state(fleet(**spec), "days", "d1", "a" * 64, 1.0), "me")
    for name in names:
        found = begin(found, key(name), f"{name}.job", 1, 2.0)
    return found


def words(found: DayState) -> dict[str, str]:
    return {each.key.cluster: each.verdict or str(each.status) for each in found.runs}


@pytest.mark.parametrize("bound", [1, 2, 3, 4])
def test_at_most_so_many_clusters_are_under_test(bound: int) -> None:
    found = begun(maxClusters=bound)
    while names := startable(found):
        found = begin(found, names[0], names[0].cluster, 1, 2.0)
        assert sum(each.status is RunStatus.RUNNING for each in found.runs) <= bound
    assert words(found) == dict.fromkeys(NAMES[:bound], "running") | dict.fromkeys(NAMES[bound:], "pending")
    with pytest.raises(StateConflict, match=r"others come first|it is running"):
        begin(found, key("d"), "a second Job", 1, 2.0)


@pytest.mark.parametrize(
    ("policy", "verdict", "rest"),
    [
        ("stop", "held", "pending"),
        ("stop", "inconclusive", "pending"),
        ("stop", "violated", "skipped"),
        ("stop", "interrupted", "skipped"),
        ("halt", "violated", "skipped"),
        ("halt", "interrupted", "skipped"),
        ("continue", "violated", "pending"),
        ("continue", "interrupted", "pending"),
    ],
)
def test_what_the_end_of_one_cluster_is_for_the_others(policy: str, verdict: Verdict, rest: str) -> None:
    found = end_cluster(begun("a", "b", maxClusters=2, onViolated=policy), key("a"), verdict, "why", 1, 3.0)
    assert words(found) == {"a": verdict, "b": "running", "c": rest, "d": rest}
    again = end_cluster(found, key("a"), verdict, "why", 1, 4.0)
    assert words(again) == words(found), "as after a lost answer"


def test_a_cluster_that_is_left_out_frees_its_place() -> None:
    found = leave_out(begun("a"), key("a"), "refused", 1, 3.0)
    assert words(found)["a"] == "skipped"
    assert startable(found) == (key("b"),)
    assert leave_out(found, key("a"), "refused", 1, 4.0) == found


def test_a_former_coordinator_changes_nothing() -> None:
    found = take_over(begun("a"), "another")
    with pytest.raises(StateConflict, match="taken over"):
        end_cluster(found, key("a"), "held", "", 1, 3.0)


def test_nothing_begins_in_a_halted_fleet() -> None:
    found = halt(begun("a", maxClusters=2), "ada", "pager", 3.0)
    assert startable(found) == ()
    assert found.status is DayStatus.HALTED


def test_the_state_survives_its_config_map() -> None:
    found = begun("a", "b", maxClusters=3)
    assert decode(encode(found)) == found
    assert found.gameday == fleet_day_name("europe") == "europe.fleet"


def test_the_exit_code_is_that_of_the_worst_cluster() -> None:
    done = begun("a", "b", maxClusters=4)
    done = end_cluster(end_cluster(done, key("a"), "held", "", 1, 3.0), key("b"), "held", "", 1, 3.0)
    assert fleet_exit_code(done, []) is Exit.INCONCLUSIVE, "c and d have not begun"
    unknown = leave_out(leave_out(done, key("c"), "unknown", 1, 3.0), key("d"), "unknown", 1, 3.0)
    assert fleet_exit_code(unknown, [Observation(error="timed out")]) is Exit.INCONCLUSIVE
    whole = replace(done, runs=done.runs[:2])
    assert fleet_exit_code(whole, [Observation(state=HELD)]) is Exit.HELD
    violated = Observation(state=state(run(verdict="violated"), run("two")))
    assert fleet_exit_code(whole, [Observation(state=HELD), violated]) is Exit.VIOLATED
    pending = Observation(state=RUNNING, pending_undo=("r-one",))
    assert fleet_exit_code(whole, [violated, pending]) is Exit.UNDO_PENDING


def test_the_verdict_of_a_day_is_not_taken_for_that_of_its_entries() -> None:
    found = end_cluster(begun("a", "b", maxClusters=2), key("a"), "violated", "", 1, 3.0)
    two = state(run("one", "violated"), run("two", "held"))
    seen = {name: Observation(error="timed out") for name in NAMES} | {"b": Observation(state=two)}
    assert matrix(found, seen)[1:3] == [("a", "violated", "unknown", "unknown"), ("b", "running", "violated", "held")]


def test_the_matrix_has_a_row_for_each_cluster() -> None:
    found = end_cluster(begun("a", "b", maxClusters=3), key("a"), "violated", "", 1, 3.0)
    two = state(run("one", "violated"), run("two", status=RunStatus.SKIPPED))
    other = state(run("one", status=RunStatus.RUNNING), day="d0")
    seen = {"a": Observation(state=two), "b": Observation(error="timed out"), "c": Observation(state=other)}
    assert matrix(found, {**seen, "d": Observation()}) == [
        ("cluster", "status", "one", "two"),
        ("a", "violated", "violated", "skipped"),
        ("b", "unknown", "unknown", "unknown"),
        ("c", "skipped", "skipped", "skipped"),
        ("d", "skipped", "skipped", "skipped"),
    ]


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
