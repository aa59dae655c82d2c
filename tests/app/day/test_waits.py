"""What a day waits for: with a reason that is printed and stored, until a deadline, a halt or a signal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chaos.app.day.gates import GateEvaluator, await_gates
from chaos.app.day.session import DaySession
from chaos.app.day.stop import DayHalted
from chaos.app.day.waits import Wait, await_pause, await_window, impaired_nodes, wait_until
from chaos.cluster.errors import KubeUnreachable
from chaos.core.errors import Aborted
from chaos.engine.stop import Interrupted, StopRequest
from chaos.gameday.document import Gate
from chaos.gameday.gate_check import GateResult
from chaos.gameday.state import DayRun, Halt, RunKey, Waiting
from chaos.gameday.transitions import StateConflict, before_fault, begin, finish, take_over
from tests.kit.day_session import Day
from tests.kit.web_server import Answer, web_server

BEGIN = datetime(2026, 11, 23, 10, 0, tzinfo=UTC).timestamp()  # a Monday
ONE, TWO = RunKey("one", "", 1), RunKey("two", "", 1)


def end_first(day: Day) -> None:
    """The first run has just held."""
    session, now = day.session, day.session.now()
    session.update(lambda state: begin(state, ONE, "r1", session.epoch, now))
    session.update(lambda state: before_fault(state, ONE, "r1", session.epoch))
    session.update(lambda state: finish(state, ONE, "r1", "held", session.epoch, now))


def until(day: Day, seconds: float, why: str = "not yet") -> Any:
    """A check that holds from then on."""
    end = day.clock.t + seconds
    return lambda: why if day.clock.t < end else ""


def test_what_holds_is_not_waited_for(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    assert wait_until(day.session, Wait("it", lambda: "", 1.0)) == ""
    assert (day.lines.lines, day.clock.slept, day.kube.version) == ([], 0.0, 1)


def test_a_wait_is_printed_and_stored_while_it_lasts(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    seen: list[Waiting | None] = []
    day.clock.agenda.append((BEGIN + 3, lambda: seen.append((day.session.store.read() or day.session.state).waiting)))
    assert wait_until(day.session, Wait("it", until(day, 5), 1.0, deadline=BEGIN + 60)) == ""
    assert day.lines.lines == [
        "2026-11-23T10:00:00Z  waiting for it, at most until 2026-11-23T10:01:00Z: not yet",
        "2026-11-23T10:00:05Z  waited 5s for it",
    ]
    assert seen == [Waiting("it", "not yet", BEGIN, BEGIN + 60)]
    assert day.session.state.waiting is None


def test_a_deadline_returns_the_last_reason(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    assert wait_until(day.session, Wait("it", lambda: "never", 7.0, deadline=BEGIN + 20)) == "never"
    assert day.clock.t == BEGIN + 20
    assert "gave up waiting for it after 20s" in day.text


def test_a_changed_reason_is_printed_and_one_that_stays_every_ten_minutes(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    reasons = {0: "a", 5: "b"}
    check = lambda: "" if day.clock.t >= BEGIN + 1300 else reasons[0 if day.clock.t < BEGIN + 5 else 5]  # noqa: E731
    wait_until(day.session, Wait("it", check, 5.0))
    assert [line.split("Z  ")[1] for line in day.lines.lines] == [
        "waiting for it: a",
        "waiting for it: b",
        "waiting for it: b",
        "waiting for it: b",
        "waited 21m40s for it",
    ]


def test_an_error_of_the_check_is_a_reason(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)

    def check() -> str:
        if day.clock.t < BEGIN + 5:
            raise KubeUnreachable("refused", "the server does not answer")
        return ""

    assert wait_until(day.session, Wait("it", check, 5.0)) == ""
    assert "waiting for it: the server does not answer" in day.text


def halt_it(session: DaySession) -> None:
    session.stop.on_halt(Halt("ada", 1.0, "pager"))


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        (halt_it, DayHalted),
        (lambda session: session.stop.on_signal(15), Interrupted),
        (lambda session: session.stop.on_loss("taken"), Aborted),
        (lambda session: session.stop.on_crash(ZeroDivisionError()), ZeroDivisionError),
        (lambda session: session.store.update(lambda state: take_over(state, "other")), StateConflict),
    ],
)
def test_a_wait_ends_with_the_work(tmp_path: Path, stop: Any, error: type[BaseException]) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    day.clock.agenda.append((BEGIN + 3, lambda: stop(day.session)))
    with pytest.raises(error):
        wait_until(day.session, Wait("it", lambda: f"at {day.clock.t}", 1.0))
    assert day.clock.t <= BEGIN + 4


def test_a_halt_and_a_signal_stop_the_run_that_is_active(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    first, second, third = StopRequest(), StopRequest(), StopRequest()
    day.session.stop.begin_run(first, day.clock)
    day.session.stop.end_run()
    halt_it(day.session)
    assert first.reason == ""
    day.session.stop.begin_run(second, day.clock)  # halted since the last check
    assert (second.reason, second.signum) == ("game day halted by ada: pager", None)
    day.session.stop.on_signal(2)
    day.session.stop.begin_run(third, day.clock)
    assert third.signum == 2


def test_an_abort_condition_halts_a_day_that_waits(tmp_path: Path) -> None:
    nodes = [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": True}]
    day = Day(tmp_path, ["one"], BEGIN, abort=nodes)
    day.session.violated = lambda: "two nodes are not Ready" if day.clock.t >= BEGIN + 20 else ""
    with pytest.raises(DayHalted, match="game day halted by an abort condition: two nodes are not Ready"):
        wait_until(day.session, Wait("it", lambda: "never", 60.0))
    assert day.clock.t == BEGIN + 20
    state = day.session.store.read()
    assert state is not None
    assert state.halt is not None
    assert state.halt.reason == "two nodes are not Ready"


def test_abort_conditions_that_cannot_be_judged_halt_nothing(tmp_path: Path) -> None:
    nodes = [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": True}]
    day = Day(tmp_path, ["one"], BEGIN, abort=nodes)

    def violated() -> str:
        raise KubeUnreachable("refused", "the server does not answer")

    day.session.violated = violated
    assert wait_until(day.session, Wait("it", until(day, 5), 5.0)) == ""


def test_no_pause_before_the_first_run(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN)
    day.kube.nodes["worker-1"] = "not ready"
    await_pause(day.session)
    assert day.clock.slept == 0


def test_the_pause_counts_from_the_end_of_the_last_run(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN, pause={"atLeast": "1m", "recovery": None})
    end_first(day)
    day.clock.t += 20
    day.kube.nodes["worker-1"] = "not ready"  # not waited for
    await_pause(day.session)
    assert day.clock.t == BEGIN + 60


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("not ready", "worker-1 is not Ready"),
        ("cordoned", "worker-1 is cordoned"),
        ("node.kubernetes.io/unreachable", "worker-1 has the taint node.kubernetes.io/unreachable:NoExecute"),
        ("example.com/mine", ""),
    ],
)
def test_the_pause_waits_for_the_recovery(tmp_path: Path, wrong: str, reason: str) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN, pause={"recovery": "5m"})
    end_first(day)
    day.kube.nodes["worker-1"] = wrong
    day.clock.agenda.append((BEGIN + 42, lambda: day.kube.nodes.update({"worker-1": ""})))
    await_pause(day.session)
    assert (
        f"waiting for the recovery after one (1), at most until 2026-11-23T10:05:00Z: {reason}" in day.text
    ) == bool(reason)
    assert day.clock.t == (BEGIN + 45 if reason else BEGIN)
    assert day.session.find(TWO).is_open


def test_without_recovery_the_rest_is_skipped(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN, pause={"recovery": "2m"})
    end_first(day)
    day.kube.nodes["worker-1"] = "cordoned"
    await_pause(day.session)
    why = "the cluster has not recovered within 2m after one (1): worker-1 is cordoned"
    assert day.session.find(TWO).reason == why
    assert f"stopping the day: {why}" in day.text


def test_what_was_wrong_before_the_day_is_not_waited_for(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN)
    day.kube.nodes["worker-2"] = "cordoned"
    assert impaired_nodes(day.kube) == {"worker-2": "is cordoned"}
    day.session.update(lambda state: type(state)(**{**_fields(state), "impaired": ("worker-2",)}))
    end_first(day)
    await_pause(day.session)
    assert day.clock.t == BEGIN + 5  # only the least pause


def _fields(state: Any) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


WINDOWS = [
    ([{"from": "09:00", "to": "12:00"}], 0.0, ""),
    ([{"from": "11:00", "to": "12:00"}], 3600.0, "it is closed: outside the hours"),
    ([{"from": "09:00", "to": "10:00"}], 23 * 3600.0, "it is closed: outside the hours"),
    (
        [{"from": "09:00", "to": "10:01"}, {"from": "14:00", "to": "15:00"}],
        4 * 3600.0,
        "it closes at 2026-11-23T10:01:00Z, and the run is expected to take 1m20s",
    ),
]


@pytest.mark.parametrize(("hours", "waited", "reason"), WINDOWS)
def test_a_run_begins_when_it_fits(tmp_path: Path, hours: Any, waited: float, reason: str) -> None:
    day = Day(tmp_path, ["one"], BEGIN, window={"zone": "UTC", "open": hours}, lasts="80s")
    assert await_window(day.session, day.session.find(ONE))
    assert day.clock.t == BEGIN + waited
    assert reason in day.text


def test_a_run_that_never_fits_is_skipped(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN, window={"open": [{"from": "09:00", "to": "09:01"}]}, lasts="80s")
    assert not await_window(day.session, day.session.find(ONE))
    assert day.session.find(ONE).reason == "the window is never open for 1m20s in the next ten years"


def answers(since: float, before: bool | None = False) -> Any:
    """A checker by which gates hold from ``since`` on, and are unknown or false before."""

    def checker(session: DaySession, gates: list[Gate], _: DayRun) -> list[GateResult]:
        holds = True if session.now() >= since else before
        return [GateResult(str(gate), holds, "budget spent") for gate in gates]

    return checker


def gate(**keys: Any) -> list[dict[str, Any]]:
    return [{"kind": "error-budget", "query": "budget", "atLeast": 0.2, **keys}]


GATES = [
    (gate(), 0.0, True, True, ""),
    (gate(), 1e12, False, False, "stopping the day: gate error budget: at least 20% left of budget: budget spent"),
    (gate(), 1e12, None, False, "stopping the day: gate error budget"),
    (gate(onFailure="skip"), 1e12, False, False, "skipping one (1): gate error budget"),
    (gate(onFailure="wait", wait="5m"), BEGIN + 95, None, True, "waiting for the gates of one (1)"),
    (gate(onFailure="wait", wait="5m"), BEGIN + 1000, False, False, "stopping the day: gate error budget"),
]


@pytest.mark.parametrize(("gates", "since", "before", "begins", "text"), GATES)
def test_gates(tmp_path: Path, gates: Any, since: float, before: bool | None, begins: bool, text: str) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN, gates=gates)
    assert await_gates(day.session, day.session.find(ONE), answers(since, before)) == begins
    assert text in day.text
    stops = not begins and gates[0].get("onFailure") != "skip"
    assert [run.is_open for run in day.session.state.runs] == [begins, not stops]
    if begins:
        assert day.clock.t == BEGIN + (100 if since else 0)
    elif gates[0].get("onFailure") == "wait":
        assert day.clock.t == BEGIN + 300


def test_a_gate_that_must_hold_is_not_hidden_by_one_that_is_waited_for(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN, gates=gate(onFailure="wait", wait="5m") + gate(onFailure="skip", atLeast=0.1))
    assert not await_gates(day.session, day.session.find(ONE), answers(1e12))
    assert day.clock.t == BEGIN
    assert "at least 10% left" in day.session.find(ONE).reason


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        (halt_it, DayHalted),
        (lambda session: session.stop.on_signal(15), Interrupted),
        (lambda session: session.stop.on_loss("taken"), Aborted),
    ],
)
def test_a_stop_while_a_gate_is_evaluated_is_no_answer_of_that_gate(
    tmp_path: Path, stop: Any, error: type[Exception]
) -> None:
    """Nothing is skipped: the day can be resumed."""
    with web_server(Answer(hang=True)) as server:
        day = Day(tmp_path, ["one", "two"], BEGIN, gates=[{"kind": "http", "url": server.url}])
        day.clock.agenda.append((BEGIN + 0.3, lambda: stop(day.session)))
        with pytest.raises(error):
            await_gates(day.session, day.session.find(ONE), GateEvaluator())
    assert all(run.is_open for run in day.session.state.runs)


APPROVAL = [{"kind": "approval", "by": ["ada"]}]


def test_the_terminal_prompts_for_missing_approvals(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN, gates=APPROVAL)
    prompts: list[str] = []

    def ask(persons: Any, what: str, plan_hash: str) -> str:
        prompts.append(f"{what} by {persons}, plan {plan_hash}")
        return "ada"

    object.__setattr__(day.session.request, "ask_approval", ask)
    assert await_gates(day.session, day.session.find(ONE), answers(0.0))
    assert prompts == [f"day mon of days by ['ada'], plan {day.session.state.plan_hash}"]
    (approval,) = day.session.state.approvals
    assert (approval.by, approval.via, approval.entry) == ("ada", "tests@here", "")
    assert await_gates(day.session, day.session.find(ONE), answers(0.0))
    assert len(prompts) == 1
