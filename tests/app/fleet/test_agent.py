"""The thread of one cluster: it creates one Job at most, and what it reports is what it saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from chaos.app.fleet import agent as agent_module
from chaos.app.fleet.agent import Agent, Wanted
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.gameday.fleet_state import Observation, Phase
from tests.gameday.test_fleet_state import HALTED, HELD, PLAN, RUNNING, job
from tests.kit.processes import until

SECONDS = 60.0  # a busy machine is slow


class FakeMember:
    """A cluster. ``fails``: raised by whatever changes it."""

    name, plan_hash = "a", PLAN

    def __init__(self, seen: Observation) -> None:
        self.seen, self.calls = seen, list[str]()
        self.fails: Exception | None = None
        self.then: Observation | None = None

    def observe(self, day: str) -> Observation:
        assert day == "d1"
        return self.seen

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.fails:
            raise self.fails
        self.seen = self.then or self.seen

    def check(self) -> str:
        return ""

    def start(self, _: str, permit: Callable[[], None]) -> None:
        self.calls.append("apply")
        permit()
        self.calls.pop()
        self._call("start")

    def halt(self, by: str, reason: str) -> str:
        self._call(f"halt by {by}: {reason}")
        return ""

    def delete(self, _: Any) -> None:
        self._call("delete")

    def clean(self) -> None:
        self._call("clean")

    def close(self) -> None:
        self.calls.append("close")


@contextmanager
def at_work(
    member: FakeMember, wanted: Wanted, why: str = "", permit: Callable[[bool], None] = lambda _: None
) -> Iterator[tuple[Agent, list[BaseException]]]:
    crashes: list[BaseException] = []
    agent = Agent(cast("Any", member), "d1", permit, crashes.append)
    agent.want(wanted, why)
    agent.start()
    try:
        yield agent, crashes
    finally:
        agent.stop()
        agent.join(SECONDS)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "PERIOD", 0.01)


def rounds(agent: Agent, number: int) -> None:
    """Wait for some more looks."""
    for _ in range(number):
        last = agent.inspection.at
        until(lambda last=last: agent.inspection.at > last)  # type: ignore[misc]


def test_nothing_is_done_to_a_cluster_that_is_only_watched() -> None:
    member = FakeMember(Observation())
    with at_work(member, Wanted.WATCH) as (agent, _):
        until(lambda: agent.inspection.assessment.phase is Phase.IDLE)
        rounds(agent, 3)
        assert member.calls == []
    assert member.calls == ["close"]


@pytest.mark.parametrize("seen", [Observation(), Observation(job=job("failed"), state=RUNNING)])
def test_one_job_is_created_whatever_is_seen_then(seen: Observation) -> None:
    member = FakeMember(seen)
    with at_work(member, Wanted.RUN) as (agent, _):
        until(lambda: agent.inspection.has_created)
        rounds(agent, 5)
        assert member.calls == ["start"]


@pytest.mark.parametrize(
    "seen",
    [
        Observation(error="timed out"),
        Observation(job=job()),
        Observation(job=job(), state=RUNNING),
        Observation(job=job("failed"), state=HALTED),
        Observation(state=HELD),
        Observation(job=job("failed")),
        Observation(job=job(day="d0")),
    ],
)
def test_no_job_is_created_where_none_is_missing(seen: Observation) -> None:
    member = FakeMember(seen)
    with at_work(member, Wanted.RUN) as (agent, _):
        until(lambda: agent.inspection.observation is seen)
        rounds(agent, 3)
        assert member.calls == []


def test_a_cluster_that_refuses_is_final() -> None:
    member = FakeMember(Observation())
    member.fails = Refused("may not create jobs")
    with at_work(member, Wanted.RUN) as (agent, _):
        until(lambda: agent.inspection.given_up == "may not create jobs")
        rounds(agent, 3)
        assert member.calls == ["start"]
        assert not agent.inspection.has_created


def test_a_failure_is_tried_again() -> None:
    member = FakeMember(Observation())
    member.fails = NodefallError("500: etcd is gone")
    with at_work(member, Wanted.RUN) as (agent, _):
        until(lambda: agent.inspection.problem == "500: etcd is gone" and len(member.calls) > 1)
        member.fails = None
        until(lambda: agent.inspection.has_created)


def test_without_permission_nothing_is_applied() -> None:
    def permit(_: bool) -> None:
        raise Aborted("the lock is lost")

    member = FakeMember(Observation())
    with at_work(member, Wanted.RUN, permit=permit) as (agent, _):
        until(lambda: agent.inspection.problem == "the lock is lost")
        assert member.calls == []


def test_what_begins_after_a_violation_is_given_up_but_not_an_undo() -> None:
    def permit(is_first: bool) -> None:
        if is_first:
            raise Refused("stopped: a violation")

    member = FakeMember(Observation())
    with at_work(member, Wanted.RUN, permit=permit) as (agent, _):
        until(lambda: agent.inspection.given_up == "stopped: a violation")
    assert "start" not in member.calls
    member = FakeMember(Observation(job=job("failed"), state=RUNNING))
    with at_work(member, Wanted.RUN, permit=permit) as (agent, _):
        until(lambda: agent.inspection.has_created)


def test_no_job_is_created_once_the_watch_ends() -> None:
    """As what it needs may take long to apply."""
    number, member = 0, FakeMember(Observation())

    def permit(_: bool) -> None:
        nonlocal number
        number += 1
        agent.stop()

    agent = Agent(cast("Any", member), "d1", permit, lambda _: None)
    agent.want(Wanted.RUN)
    agent.start()
    agent.join(SECONDS)
    assert (number, member.calls) == (1, ["apply", "close"])


def test_a_halt_goes_on_until_nothing_runs() -> None:
    member = FakeMember(Observation(job=job(), state=RUNNING))
    with at_work(member, Wanted.HALT, "pager") as (_, _crashes):
        until(lambda: member.calls.count("halt by the fleet: pager") > 1)


def test_a_job_that_does_not_begin_is_deleted() -> None:
    member = FakeMember(Observation(job=job(reason="ErrImagePull")))
    member.then = Observation()
    with at_work(member, Wanted.CANCEL, "too late") as (agent, _):
        until(lambda: agent.inspection.given_up == "too late")
        agent.want(Wanted.RUN)
        rounds(agent, 3)
        assert member.calls == ["delete"], "it is not created again"


def test_a_job_that_has_begun_meanwhile_is_not_deleted() -> None:
    member = FakeMember(Observation(job=job(), state=RUNNING))
    with at_work(member, Wanted.CANCEL, "too late") as (agent, _):
        until(lambda: agent.inspection.assessment.phase is Phase.RUNNING)
        rounds(agent, 3)
        assert member.calls == []


def test_what_was_applied_is_deleted_once() -> None:
    member = FakeMember(Observation(state=HELD))
    member.fails = NodefallError("timed out")
    with at_work(member, Wanted.CLEAN) as (agent, _):
        until(lambda: agent.inspection.problem == "timed out")
        member.fails = None
        until(lambda: agent.inspection.is_clean)
        number = len(member.calls)
        rounds(agent, 3)
        assert len(member.calls) == number


def test_an_old_snapshot_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a request that hangs: what was seen before it proves nothing."""
    member = FakeMember(Observation(job=job(), state=RUNNING))
    with at_work(member, Wanted.WATCH) as (agent, _):
        assert agent.inspection.assessment.phase in (Phase.UNKNOWN, Phase.RUNNING)
        until(lambda: agent.inspection.assessment.phase is Phase.RUNNING)
    monkeypatch.setattr(agent_module, "STALE", -1.0)
    assert agent.inspection.assessment.phase is Phase.UNKNOWN
    assert "it has not answered for" in agent.inspection.assessment.reason


def test_a_crash_is_reported() -> None:
    member = FakeMember(Observation())
    member.fails = RuntimeError("a bug")
    with at_work(member, Wanted.RUN) as (_, crashes):
        until(lambda: crashes)
        assert str(crashes[0]) == "a bug"
