"""The state of a fleet: which clusters may begin, and what a violation, a halt and an unknown cluster lead to."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.core.errors import Exit
from chaos.gameday.fleet_document import Fleet
from chaos.gameday.fleet_state import (
    Observation,
    end_cluster,
    fleet_day_name,
    fleet_exit_code,
    leave_out,
    matrix,
    new_fleet_state,
)
from chaos.gameday.state import DayState, DayStatus, RunKey, RunStatus, Verdict, startable
from chaos.gameday.stored_day import decode, encode
from chaos.gameday.transitions import StateConflict, begin, halt, take_over
from tests.gameday.fleet.test_observation import HELD, RUNNING, run, state

NAMES = ["a", "b", "c", "d"]


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
