"""The state of a day: transitions, a kill at any moment, and its form as JSON."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chaos.core.errors import Refused
from chaos.core.redaction import register_secret
from chaos.gameday import transitions
from chaos.gameday.document import MAX_RUNS, GameDay
from chaos.gameday.events import EventKind, Undelivered
from chaos.gameday.state import (
    MAX_IMPAIRED,
    Approval,
    DayRun,
    DayState,
    DayStatus,
    PastWait,
    RunKey,
    RunStatus,
    Verdict,
    Waiting,
    day_runs,
    runs_on,
    startable,
)
from chaos.gameday.stored_day import MAX_BYTES, decode, encode
from chaos.gameday.transitions import MAX_ATTEMPTS, StateConflict, before_fault, begin, finish, halt, recover, resume

HEAD = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "GameDay", "metadata": {"name": "day"}}
HASH = "a" * 64


def gameday(entries: Sequence[Mapping[str, Any]], clusters: int = 0, **keys: Any) -> GameDay:
    names = [{"name": f"c{number}", "inventory": "x.yaml"} for number in range(1, clusters + 1)]
    spec = {"title": "t", "owner": "o", "entries": list(entries), "clusters": names, **keys}
    return GameDay.model_validate(HEAD | {"spec": spec})


def state_of(day: GameDay) -> DayState:
    names = [entry.name or "" for entry in day.spec.entries]
    runs = day_runs(day, names, 7)
    return DayState("day-1", "day", HASH, 7, 0.0, day.spec.order, day.spec.parallel, "me", 1, runs)


def two(**keys: Any) -> DayState:
    return state_of(gameday([{"name": "a", "experiment": "a.yaml"}, {"name": "b", "experiment": "b.yaml"}], **keys))


A, B = RunKey("a", "", 1), RunKey("b", "", 1)


def done(state: DayState, key: RunKey, verdict: Verdict = "held") -> DayState:
    run = f"{key.entry}{key.cluster}{key.repetition}"
    state = before_fault(begin(state, key, run, state.epoch, 1.0), key, run, state.epoch)
    return finish(state, key, run, verdict, state.epoch, 2.0)


def test_a_day_from_begin_to_end() -> None:
    state = two()
    assert (startable(state), state.status) == ((A,), DayStatus.RUNNING)
    state = begin(state, A, "run-1", 1, 10.0)
    assert startable(state) == ()
    state = finish(before_fault(state, A, "run-1", 1), A, "run-1", "held", 1, 20.0)
    run = state.find(A)
    assert (
        run == DayRun(A, run.seed, "stop", RunStatus.DONE, "run-1", True, 1, "held", "", 10.0, 20.0) if run else False
    )
    assert startable(state) == (B,)
    state = done(state, B)
    assert (startable(state), state.status) == ((), DayStatus.FINISHED)


def test_each_repetition_has_a_seed_that_stays() -> None:
    day = gameday(
        [{"name": "a", "experiment": "a.yaml", "repeat": 3}, {"name": "b", "experiment": "b.yaml", "seed": 9}]
    )
    runs = state_of(day).runs
    assert [run.key.repetition for run in runs] == [1, 2, 3, 1]
    assert len({run.seed for run in runs}) == 4
    assert runs[3].seed == 9
    assert runs == state_of(day).runs


ORDERS = [
    ("by-entry", 1, ["a c1", "a c2", "a c3", "b c1", "b c2", "b c3"]),
    ("by-cluster", 1, ["a c1", "b c1", "a c2", "b c2", "a c3", "b c3"]),
    ("by-entry", 2, ["a c1|a c2", "a c3", "b c1|b c2", "b c3"]),
    ("by-cluster", 2, ["a c1|a c2", "b c1|b c2", "a c3", "b c3"]),
    ("by-entry", 3, ["a c1|a c2|a c3", "b c1|b c2|b c3"]),
]


@pytest.mark.parametrize(("order", "parallel", "rounds"), ORDERS)
def test_the_order_over_several_clusters(order: str, parallel: int, rounds: list[str]) -> None:
    entries: list[dict[str, Any]] = [{"name": "a", "experiment": "a.yaml"}, {"name": "b", "experiment": "b.yaml"}]
    state = state_of(gameday(entries, clusters=3, order=order, parallel=parallel))
    found = []
    while keys := startable(state):
        found.append("|".join(f"{key.entry} {key.cluster}" for key in keys))
        for key in keys:
            state = begin(state, key, f"{key.entry}{key.cluster}{key.repetition}", 1, 1.0)
        assert startable(state) == ()
        for key in keys:
            state = finish(state, key, f"{key.entry}{key.cluster}{key.repetition}", "held", 1, 2.0)
    assert found == rounds
    assert state.status is DayStatus.FINISHED


def test_the_runs_on_one_cluster() -> None:
    entries: list[dict[str, Any]] = [
        {"name": "a", "experiment": "a.yaml", "clusters": ["c2"], "seed": 3},
        {"name": "b", "experiment": "b.yaml", "repeat": 2, "seed": 5},
    ]
    day = gameday(entries, clusters=2)
    found = {cluster: [str(run.key) for run in runs_on(day, ["a", "b"], 7, cluster)] for cluster in ("c1", "c2", "")}
    assert found == {
        "c1": ["b (1) on c1", "b (2) on c1"],
        "c2": ["a (1) on c2", "b (1) on c2", "b (2) on c2"],
        "": ["a (1)", "b (1)", "b (2)"],
    }
    assert [run.seed for run in runs_on(day, ["a", "b"], 7, "")] == [3, 5, 6]


def test_an_entry_of_some_clusters_only() -> None:
    entries: list[dict[str, Any]] = [
        {"name": "a", "experiment": "a.yaml", "clusters": ["c2"]},
        {"name": "b", "experiment": "b.yaml"},
    ]
    state = state_of(gameday(entries, clusters=2, parallel=2))
    assert startable(state) == (RunKey("a", "c2", 1),)
    assert startable(done(state, RunKey("a", "c2", 1))) == (RunKey("b", "c1", 1), RunKey("b", "c2", 1))


@pytest.mark.parametrize(
    ("policy", "verdict", "rest"),
    [
        ("stop", "violated", RunStatus.SKIPPED),
        ("stop", "inconclusive", RunStatus.PENDING),
        ("continue", "violated", RunStatus.PENDING),
    ],
)
def test_a_violation_stops_the_day(policy: str, verdict: Verdict, rest: RunStatus) -> None:
    state = done(two(onViolated=policy), A, verdict)
    skipped = state.find(B)
    assert skipped is not None
    assert skipped.status is rest
    assert skipped.reason == ("stopped: a (1) was violated" if rest is RunStatus.SKIPPED else "")


def test_what_runs_elsewhere_ends_after_a_violation() -> None:
    entries: list[dict[str, Any]] = [{"name": "a", "experiment": "a.yaml"}, {"name": "b", "experiment": "b.yaml"}]
    state = state_of(gameday(entries, clusters=2, parallel=2))
    for cluster in ("c1", "c2"):
        state = begin(state, RunKey("a", cluster, 1), cluster, 1, 1.0)
    state = finish(state, RunKey("a", "c1", 1), "c1", "violated", 1, 2.0)
    assert [run.status for run in state.runs] == ["done", "running", "skipped", "skipped"]
    assert finish(state, RunKey("a", "c2", 1), "c2", "held", 1, 3.0).status is DayStatus.FINISHED


def test_a_lost_answer_is_repeated() -> None:
    """The same transition again changes nothing."""
    state = begin(two(), A, "run-1", 1, 1.0)
    assert begin(state, A, "run-1", 1, 2.0) == state
    state = before_fault(state, A, "run-1", 1)
    assert before_fault(state, A, "run-1", 1) == state
    state = finish(state, A, "run-1", "held", 1, 3.0)
    assert finish(state, A, "run-1", "held", 1, 4.0) == state
    state = transitions.skip(state, B, "closed", 1, 4.0)
    assert transitions.skip(state, B, "closed", 1, 5.0) == state
    assert transitions.give_back(state, B, "run-2", 1) == state  # refused: given back and skipped in one write


def refused(message: str) -> Any:
    return pytest.raises(StateConflict, match=message)


def test_never_twice_the_same() -> None:
    state = begin(two(), A, "run-1", 1, 1.0)
    with refused(r"cannot begin a \(1\): it is running as run-1"):
        begin(state, A, "run-2", 1, 2.0)
    state = finish(state, A, "run-1", "held", 1, 3.0)
    with refused(r"cannot begin a \(1\): it is done as run-1"):
        begin(state, A, "run-2", 1, 4.0)
    with refused(r"the run ID run-1 is in use"):
        begin(state, B, "run-1", 1, 4.0)
    with refused(r"a \(1\) is done as run-1"):
        finish(state, A, "run-1", "violated", 1, 4.0)
    with refused(r"cannot skip a \(1\): it is done"):
        transitions.skip(state, A, "late", 1, 4.0)


def test_nothing_begins_out_of_order() -> None:
    with refused("others come first"):
        begin(two(), B, "run-1", 1, 1.0)
    with refused(r"day-1 has no run c \(1\)"):
        begin(two(), RunKey("c", "", 1), "run-1", 1, 1.0)
    with refused(r"a \(1\) is pending"):
        before_fault(two(), A, "run-1", 1)


def test_a_former_holder_changes_nothing() -> None:
    state = begin(two(), A, "run-1", 1, 1.0)
    taken = transitions.take_over(state, "other@machine")
    assert (taken.holder, taken.epoch) == ("other@machine", 2)
    changes: tuple[Callable[[], DayState], ...] = (
        lambda: begin(taken, A, "run-2", 1, 1.0),
        lambda: before_fault(taken, A, "run-1", 1),
        lambda: finish(taken, A, "run-1", "held", 1, 2.0),
        lambda: recover(taken, A, None, 1, 2.0),
        lambda: transitions.skip(taken, B, "", 1, 2.0),
        lambda: transitions.skip_rest(taken, "", 1, 2.0),
        lambda: transitions.give_back(taken, A, "run-1", 1),
    )
    for change in changes:
        with refused("day-1 was taken over by other@machine"):
            change()
    assert before_fault(taken, A, "run-1", 2) != taken


def test_a_halted_day_begins_nothing_until_it_is_resumed() -> None:
    state = halt(two(), "ada", "pager", 1.0)
    assert (state.status, startable(state)) == (DayStatus.HALTED, ())
    assert halt(state, "bob", "me too", 2.0) == state
    with refused(r"cannot begin a \(1\): halted by ada: pager"):
        begin(state, A, "run-1", 1, 3.0)
    with refused("who resumes it is missing"):
        resume(state, " ", "fixed", 3.0)
    with refused("why is missing"):
        resume(state, "bob", "", 3.0)
    state = resume(state, "bob", "fixed", 4.0)
    assert (state.halt, startable(state)) == (None, (A,))
    assert resume(state, "eve", "again", 5.0) == state
    assert (state.halts[0].by, state.halts[0].resumed_by, state.halts[0].resumed_because) == ("ada", "bob", "fixed")


def test_a_halt_while_a_run_is_running() -> None:
    """Before its fault it goes back; after it it ends, and the rest waits."""
    planning = halt(begin(two(), A, "run-1", 1, 1.0), "ada", "", 2.0)
    with refused("cannot continue a .*: halted by ada"):
        before_fault(planning, A, "run-1", 1)
    back = transitions.give_back(planning, A, "run-1", 1)
    assert startable(resume(back, "ada", "fixed", 3.0)) == (A,)
    changing = halt(before_fault(begin(two(), A, "run-1", 1, 1.0), A, "run-1", 1), "ada", "", 2.0)
    with refused("its fault may have been injected"):
        transitions.give_back(changing, A, "run-1", 1)
    ended = finish(changing, A, "run-1", "inconclusive", 1, 3.0, "halted")
    assert (ended.status, startable(ended)) == (DayStatus.HALTED, ())


def test_a_finished_day_cannot_be_halted() -> None:
    with refused("cannot halt day-1: it is finished"):
        halt(done(done(two(), A), B), "ada", "", 3.0)


RECOVERIES: list[tuple[bool, Verdict | None, RunStatus, str]] = [
    (False, None, RunStatus.PENDING, ""),
    (True, None, RunStatus.DONE, "its process ended before its verdict"),
    (True, "held", RunStatus.DONE, ""),
    (False, "inconclusive", RunStatus.PENDING, ""),  # as after a halt: no fault, so it has still to run
    (False, "interrupted", RunStatus.PENDING, ""),
]


@pytest.mark.parametrize(("injected", "verdict", "status", "reason"), RECOVERIES)
def test_a_run_whose_process_was_killed(
    injected: bool, verdict: Verdict | None, status: RunStatus, reason: str
) -> None:
    state = begin(two(), A, "run-1", 1, 1.0)
    state = before_fault(state, A, "run-1", 1) if injected else state
    state = transitions.take_over(state, "next")
    state = recover(state, A, verdict, 2, 5.0)
    run = state.find(A)
    assert run is not None
    assert (run.status, run.reason, run.attempts) == (status, reason, 1)
    assert run.verdict == ((verdict or "interrupted") if injected else None)
    assert recover(state, A, verdict, 2, 6.0) == state
    if status is RunStatus.PENDING:
        assert begin(state, A, "run-2", 2, 6.0).find(A) == replace(
            run, status=RunStatus.RUNNING, run="run-2", attempts=2, begun=6.0
        )


def test_a_run_whose_journal_proves_that_there_was_no_fault() -> None:
    """It was killed after it had stored that the fault comes next, and before the fault."""
    state = before_fault(begin(two(), A, "run-1", 1, 1.0), A, "run-1", 1)
    state = recover(state, A, "interrupted", 1, 2.0, without_fault=True)
    assert startable(state) == (A,)
    run = begin(state, A, "run-2", 1, 3.0).find(A)
    assert run is not None
    assert (run.may_have_injected, run.attempts, run.verdict) == (False, 2, None)


def test_a_run_that_is_killed_each_time_is_given_up() -> None:
    state = two()
    for attempt in range(MAX_ATTEMPTS):
        state = transitions.take_over(begin(state, A, f"run-{attempt}", state.epoch, 1.0), "next")
        state = recover(state, A, None, state.epoch, 2.0)
    run = state.find(A)
    assert run is not None
    assert (run.status, run.reason) == (RunStatus.SKIPPED, "interrupted 5 times before its fault")
    assert startable(state) == (B,)


def test_approvals() -> None:
    state = two()
    with pytest.raises(Refused, match="approval of another plan: bbbbbbbbbbbb; the plan of day-1 is aaaaaaaaaaaa"):
        transitions.approve(state, Approval("ada", 1.0, "b" * 64))
    with pytest.raises(Refused, match="approval without a name"):
        transitions.approve(state, Approval(" ", 1.0, HASH))
    state = transitions.approve(state, Approval("ada", 1.0, HASH))
    assert transitions.approve(state, Approval("ada", 2.0, HASH)) == state
    assert state.is_approved(["bob", "ada"])
    assert not state.is_approved(["bob"])
    assert not replace(state, plan_hash="c" * 64).is_approved(["ada"])
    for number in range(1, transitions.MAX_APPROVALS):
        state = transitions.approve(state, Approval(f"p{number}", 1.0, HASH))
    with pytest.raises(Refused, match="too many approvals"):
        transitions.approve(state, Approval("one more", 1.0, HASH))


def test_an_approval_of_an_entry_is_none_of_the_others() -> None:
    state = transitions.approve(two(), Approval("ada", 1.0, HASH, "b", "ada@desk"))
    assert [state.is_approved(["ada"], entry) for entry in ("", "a", "b")] == [False, False, True]
    with pytest.raises(Refused, match="day-1 has no 'c'"):
        transitions.approve(state, Approval("ada", 1.0, HASH, "c"))


def test_a_day_that_is_ended() -> None:
    """What is running ends; the rest never begins, even after a resume."""
    state = transitions.end(begin(two(), A, "run-1", 1, 1.0), "ada", "enough", 2.0)
    assert [(run.status, run.reason) for run in state.runs] == [("running", ""), ("skipped", "ended by ada: enough")]
    state = transitions.give_back(state, A, "run-1", 1)
    assert state.status is DayStatus.HALTED
    state = transitions.end(state, "ada", "enough", 3.0)
    assert state.status is DayStatus.FINISHED
    assert transitions.end(state, "ada", "enough", 4.0) == state


def test_what_a_day_waits_for() -> None:
    waiting = Waiting("the window", "freeze", 1.0, 2.0)
    state = transitions.wait_for(two(), waiting, 1, 1.0)
    assert state.waiting == waiting
    after = transitions.wait_for(state, None, 1, 3.0)
    assert after == replace(two(), waits=(PastWait("the window", ("freeze",), 1.0, 3.0),))
    assert transitions.wait_for(after, None, 1, 4.0) == after
    with refused("was taken over"):
        transitions.wait_for(transitions.take_over(state, "next"), None, 1, 3.0)


@pytest.mark.parametrize(
    ("reasons", "saved"),
    [
        (["a"], ("a",)),
        (["a", "a"], ("a",)),
        (["a", "b", "a"], ("b", "a")),
        (["a", "b", "c"], ("a", "b", "c")),
        (list("abcdefgh"), ("a", "b", "c", "d", "h")),
        (["x" * 300], ("x" * 197 + "...",)),
    ],
)
def test_first_and_last_reasons_of_a_wait(reasons: list[str], saved: tuple[str, ...]) -> None:
    state = two()
    for number, reason in enumerate(reasons):
        state = transitions.wait_for(state, Waiting("gates", reason, 1.0), 1, float(number))
    assert transitions.wait_for(state, None, 1, 9.0).waits == (PastWait("gates", saved, 1.0, 9.0),)


def test_a_wait_whose_process_died_has_no_end() -> None:
    state = transitions.wait_for(two(), Waiting("gates", "no approval", 1.0), 1, 1.0)
    state = transitions.take_over(state, "next")
    state = transitions.wait_for(state, Waiting("gates", "no approval", 5.0), 2, 5.0)
    assert state.waits == (PastWait("gates", ("no approval",), 1.0),)
    assert transitions.wait_for(state, None, 2, 6.0).waits[-1].ended == 6.0


def test_waits_are_bounded() -> None:
    state = two()
    for number in range(transitions.MAX_WAITS + 5):
        state = transitions.wait_for(state, Waiting("gates", "", float(number)), 1, float(number))
    assert len(transitions.wait_for(state, None, 1, 0.0).waits) == transitions.MAX_WAITS
    assert len(state.waits) == transitions.MAX_WAITS


def test_when_the_gates_of_a_run_held() -> None:
    first = two().runs[0].key
    state = transitions.pass_gates(two(), first, 1, 4.0)
    assert [run.gates_held for run in state.runs] == [4.0, None]
    with refused("was taken over"):
        transitions.pass_gates(two(), first, 0, 4.0)


def test_halts_are_bounded() -> None:
    state = two()
    for number in range(30):
        state = resume(halt(state, f"p{number}", "", 1.0), "ada", "fixed", 2.0)
    assert [each.by for each in state.halts] == [f"p{number}" for number in range(10, 30)]


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("short", 10, "short"),
        ("a\nb\x1bc\u2028", 10, "a b c "),
        ("x" * 11, 10, "xxxxxxx..."),
        ("ä" * 6, 10, "äää..."),
        ("\ud800", 10, " "),
    ],
)
def test_texts_are_shortened(text: str, size: int, expected: str) -> None:
    assert transitions.shorten(text, size) == expected


def test_no_reason_has_a_secret() -> None:
    """The state is readable for whoever may read ConfigMaps, and its reasons go to the receivers."""
    register_secret("correct-horse-of-the-bmc")
    message = "x" * 190 + " the BMC rejects the password correct-horse-of-the-bmc"
    state = transitions.skip(two(), A, message, 1, 1.0)
    state = halt(state, "ada", "correct-horse-of-the-bmc", 2.0)
    assert "correct" not in encode(state)


def test_the_largest_day_fits_into_a_configmap() -> None:
    worst = '\\"' * 400
    runs = tuple(
        DayRun(RunKey("e" * 63, f"{number:063}", 1), 2**32 - 1, "continue", RunStatus.DONE, f"{number:0100}", True, 5)
        for number in range(MAX_RUNS)
    )
    reason = transitions.shorten(worst, 200)
    runs = tuple(
        replace(
            run, verdict="inconclusive", reason=reason, begun=1.7e9 + 0.1, ended=1.7e9 + 0.3, gates_held=1.7e9 + 0.2
        )
        for run in runs
    )
    state = replace(two(), runs=runs)
    state = replace(
        state,
        runs=(replace(runs[0], status=RunStatus.PENDING, run="", verdict=None, may_have_injected=False), *runs[1:]),
    )
    for number in range(transitions.MAX_HALTS):
        state = resume(halt(state, worst, worst, 1.0), f"{number}{worst}", worst, 2.0)
    reasons = (reason,) * transitions.MAX_EARLIER_REASONS
    state = replace(
        state,
        waiting=Waiting(reason, reason, 1.0, 2.0, reasons),
        waits=(PastWait(reason, (*reasons, reason), 1.7e9 + 0.1, 1.7e9 + 0.3),) * transitions.MAX_WAITS,
        undelivered=(Undelivered(reason, EventKind.ENTRY_BEGINS, 1.7e9, reason),) * transitions.MAX_UNDELIVERED,
        impaired=("n" * 253,) * MAX_IMPAIRED,
    )
    for number in range(transitions.MAX_APPROVALS):
        state = transitions.approve(state, Approval(f"{number}{worst}", 1.0, HASH, "", worst))
    assert decode(encode(state)) == state
    with pytest.raises(Refused, match="state of day-1 too large"):
        encode(replace(state, runs=state.runs * 3))


def broken(**keys: Any) -> str:
    document = msgspec.json.decode(encode(done(two(), A)))
    document["runs"][0] |= keys.pop("run", {})
    return msgspec.json.encode(document | keys).decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "invalid state of a game day: Input data was truncated"),
        ("{}", "missing required field"),
        ("\ud800", "invalid state"),
        ("x" * (MAX_BYTES + 1), "longer than"),
        (broken(version=2), "unknown state of a game day: version 2"),
        (broken(parallel="1"), "Expected `int`, got `str`"),
        (broken(run={"status": "finished"}), "Invalid enum value"),
        (broken(run={"verdict": "good"}), "Invalid enum value"),
        (broken(run={"verdict": None}), r"a \(1\) is done without a verdict"),
        (broken(run={"status": "pending"}), r"a \(1\) is pending with a run ID"),
        (broken(run={"status": "pending", "run": ""}), r"a \(1\) is pending with a verdict"),
        (
            broken(run={"status": "pending", "run": "", "verdict": None}),
            "is pending, but its fault may have been injected",
        ),
        (broken(run={"run": "../one"}), r"'../one' is not a run ID"),
        (broken(run={"begun": 1e300}), r"1e\+300 is no time"),
        (broken(halts=[{"by": "ada", "at": -1.0, "reason": ""}]), "-1 is no time"),
        (broken(day="../../day"), r"'../../day' is not a valid name of a day"),
        (broken(day=""), r"'' is not a valid name of a day"),
        (broken(run={"key": {"entry": "b", "cluster": "", "repetition": 1}}), "a run is listed twice"),
    ],
)
def test_a_damaged_state_is_refused(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        decode(text)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=100))
def test_any_text_is_a_state_or_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        decode(data.decode("latin-1"))


class Cluster:
    """What a day does to clusters: whose fault was injected, and the stored state, as JSON."""

    def __init__(self, state: DayState) -> None:
        self.stored = encode(state)
        self.injected: list[RunKey] = []
        self.run_number = 0

    def store(self, state: DayState) -> DayState:
        self.stored = encode(state)
        return state


class Killed(Exception):
    """The process ends."""


def work(cluster: Cluster, chance: random.Random, kills: float) -> None:
    """A process that takes over and works until the day is finished or halted, or it is killed around a write."""

    def store(state: DayState) -> DayState:
        if chance.random() < kills:
            raise Killed
        cluster.store(state)
        if chance.random() < kills:
            raise Killed
        return state

    state = store(transitions.take_over(decode(cluster.stored), "next"))
    for run in state.runs:
        if run.status is RunStatus.RUNNING:
            is_clean = run.key not in cluster.injected  # as the run's journal proves
            state = store(recover(state, run.key, None, state.epoch, 1.0, without_fault=is_clean))
    while keys := startable(state):
        key = chance.choice(keys)
        cluster.run_number += 1
        run_id = f"run-{cluster.run_number}"
        state = store(begin(state, key, run_id, state.epoch, 1.0))
        if chance.random() < 0.1:
            state = store(halt(state, "ada", "", 1.0))
        if state.halt:
            state = store(transitions.give_back(state, key, run_id, state.epoch))
            return
        state = store(before_fault(state, key, run_id, state.epoch))
        cluster.injected.append(key)
        if chance.random() < kills:
            raise Killed
        state = store(finish(state, key, run_id, "held", state.epoch, 2.0))


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.05, 0.2]),
    st.sampled_from(["by-entry", "by-cluster"]),
    st.integers(1, 3),
)
def test_killed_at_any_moment_each_fault_is_injected_once(seed: int, kills: float, order: str, parallel: int) -> None:
    """Exactly once, unless it was given up before."""
    entries: list[dict[str, Any]] = [
        {"name": "a", "experiment": "a.yaml", "repeat": 2},
        {"name": "b", "experiment": "b.yaml"},
    ]
    cluster = Cluster(state_of(gameday(entries, clusters=3, order=order, parallel=parallel)))
    chance = random.Random(seed)  # noqa: S311 - a story, not a secret
    for _ in range(500):
        try:
            work(cluster, chance, kills)
        except Killed:
            continue
        state = decode(cluster.stored)
        if state.status is DayStatus.FINISHED:
            break
        cluster.store(resume(state, "ada", "fixed", 3.0))
    state = decode(cluster.stored)
    assert state.status is DayStatus.FINISHED
    assert len(set(cluster.injected)) == len(cluster.injected)
    held = [run.key for run in state.runs if run.verdict == "held"]
    assert set(held) <= set(cluster.injected) == {run.key for run in state.runs if run.status is RunStatus.DONE}
    assert kills or len(held) == len(state.runs)
