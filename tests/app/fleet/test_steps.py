"""Ticks of a fleet: what it wants of each cluster, and what it stores, by what is seen of all."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.app.day.stop import DayStop
from chaos.app.day.store import DayStore, existing
from chaos.app.fleet.agent import FleetRequest, FleetSession, Inspection, Wanted
from chaos.app.fleet.steps import step
from chaos.core.clock.system import uptime
from chaos.core.errors import Exit, Refused
from chaos.gameday.fleet_state import Observation, assess, fleet_exit_code, new_fleet_state
from chaos.gameday.state import RunStatus
from chaos.gameday.transitions import halt, take_over
from tests.gameday.test_fleet_state import FRESH, HALTED, HELD, PLAN, RUNNING, fleet, job, run, state, words
from tests.kit.day_api import ConfigMaps
from tests.kit.day_session import DayClock, Lines

VIOLATED = state(run("one", "violated"), run("two", status=RunStatus.RUNNING))
AT_WORK = Observation(job=job(), state=RUNNING)
OVER = Observation(job=job("complete"), state=HELD)


class FakeAgent:
    """A cluster whose snapshots are set by the test."""

    def __init__(self, name: str) -> None:
        deployment = SimpleNamespace(name="fleet-nodefall-europe", namespace="nodefall")
        self.member = SimpleNamespace(name=name, plan_hash=PLAN, cluster=SimpleNamespace(deployment=deployment))
        self.wanted, self.why = Wanted.WATCH, ""
        self.see(Observation())

    def see(self, observation: Observation, lasts: float = 0.0, **more: Any) -> None:
        now = uptime()
        self.inspection = Inspection(now, now - lasts, observation, assess(observation, "d1", PLAN), **more)

    def want(self, wanted: Wanted, why: str = "") -> None:
        self.wanted, self.why = wanted, why


class Fleet:
    """A session over four clusters whose home has only ConfigMaps."""

    def __init__(self, *, keep: bool = False, **spec: Any) -> None:
        document = fleet(**spec)
        self.lines = Lines()
        store = DayStore(ConfigMaps(), "kube-system", "europe.fleet", lambda: 5.0)
        stored = store.update(lambda _: take_over(new_fleet_state(document, "days", "d1", "f" * 64, 1.0), "me"))
        loaded = cast("Any", SimpleNamespace(document=document))
        request = FleetRequest(loaded, Path(), cast("Any", self.lines), lambda *_: None, "", keep)
        self.agents = {cluster.name: FakeAgent(cluster.name) for cluster in document.spec.clusters}
        home = SimpleNamespace(inventory=SimpleNamespace(cluster=SimpleNamespace(time_source=True)), clock=DayClock())
        self.session = FleetSession(
            request, cast("Any", home), store, cast("Any", None), DayStop(cast("Any", home.clock)), stored,
            cast("Any", self.agents),
        )  # fmt: skip

    def tick(self, **seen: Observation) -> bool:
        for name, observation in seen.items():
            self.agents[name].see(observation, has_created=True)
        return step(self.session)

    @property
    def words(self) -> dict[str, str]:
        return words(self.session.state)

    @property
    def wanted(self) -> dict[str, str]:
        return {name: str(agent.wanted) for name, agent in self.agents.items()}

    @property
    def text(self) -> str:
        return "\n".join(self.lines.lines)


def test_as_many_begin_as_may_be_under_test() -> None:
    fleet_ = Fleet(maxClusters=2)
    assert fleet_.tick()
    assert fleet_.words == {"a": "running", "b": "running", "c": "pending", "d": "pending"}
    assert fleet_.wanted == {"a": "run", "b": "run", "c": "watch", "d": "watch"}
    assert fleet_.tick(a=AT_WORK, b=OVER)
    assert fleet_.words == {"a": "running", "b": "held", "c": "running", "d": "pending"}
    assert fleet_.wanted["b"] == "clean"


def test_a_fleet_ends_when_all_have_ended() -> None:
    fleet_ = Fleet(maxClusters=4)
    assert fleet_.tick()
    assert not fleet_.tick(a=OVER, b=OVER, c=OVER, d=OVER)
    assert set(fleet_.words.values()) == {"held"}
    assert fleet_exit_code(fleet_.session.state, [OVER]) is Exit.HELD


def test_what_was_applied_can_stay() -> None:
    fleet_ = Fleet(keep=True)
    fleet_.tick()
    fleet_.tick(a=OVER)
    assert fleet_.wanted["a"] == "watch"


@pytest.mark.parametrize(
    ("policy", "words_", "wanted_of_b"),
    [("stop", "skipped", "run"), ("halt", "skipped", "halt"), ("continue", "pending", "run")],
)
def test_a_violation_is_acted_upon_before_its_day_is_over(policy: str, words_: str, wanted_of_b: str) -> None:
    fleet_ = Fleet(maxClusters=2, onViolated=policy)
    fleet_.tick()
    assert fleet_.tick(a=Observation(job=job(), state=VIOLATED), b=AT_WORK)
    fleet_.tick()
    assert (fleet_.words["c"], fleet_.wanted["b"]) == (words_, wanted_of_b)
    assert bool(fleet_.session.state.halt) == (policy == "halt")


def test_a_day_that_is_over_at_once_is_said_to_be_violated_by_its_entry() -> None:
    fleet_ = Fleet()
    fleet_.tick()
    assert not fleet_.tick(a=Observation(job=job("failed"), state=state(run("one", "violated"))))
    assert fleet_.words == {"a": "violated", "b": "skipped", "c": "skipped", "d": "skipped"}
    assert "no further cluster starts: one (1) on a was violated" in fleet_.text


def test_a_fleet_that_was_resumed_is_not_halted_by_the_same_violation() -> None:
    from chaos.gameday.transitions import resume  # noqa: PLC0415

    fleet_ = Fleet(maxClusters=2, onViolated="halt")
    fleet_.tick()
    fleet_.tick(a=Observation(job=job(), state=VIOLATED), b=AT_WORK)
    fleet_.session.update(lambda found: resume(found, "ada", "known", 6.0))
    fleet_.tick()
    assert fleet_.session.state.halt is None


def test_a_halt_reaches_what_runs_and_begins_nothing() -> None:
    fleet_ = Fleet(maxClusters=2)
    fleet_.tick()
    fleet_.session.store.update(existing(lambda found: halt(found, "ada", "pager", 5.0)))
    fleet_.session.update(lambda found: found)
    assert fleet_.tick(a=AT_WORK, b=Observation(job=job()))
    assert fleet_.wanted == {"a": "halt", "b": "halt", "c": "watch", "d": "watch"}
    assert fleet_.agents["a"].why == "pager"
    assert not fleet_.tick(a=Observation(job=job("failed"), state=HALTED), b=Observation())
    assert fleet_.wanted == {"a": "clean", "b": "clean", "c": "watch", "d": "watch"}
    assert fleet_.words == {"a": "running", "b": "running", "c": "pending", "d": "pending"}, "to go on after resume"


def test_a_halt_that_comes_first_is_no_error() -> None:
    fleet_ = Fleet(maxClusters=2)
    fleet_.session.store.update(existing(lambda found: halt(found, "ada", "pager", 5.0)))
    assert not fleet_.tick()
    assert set(fleet_.words.values()) == {"pending"}
    assert set(fleet_.wanted.values()) == {"watch"}


@pytest.mark.parametrize("policy", ["stop", "halt", "continue"])
def test_a_job_that_is_not_there_yet_is_not_created_after_a_violation(policy: str) -> None:
    fleet_ = Fleet(maxClusters=2, onViolated=policy)
    fleet_.session.lock = cast("Any", SimpleNamespace(check=lambda: None))
    fleet_.tick()
    fleet_.session.permit(is_first=True)
    fleet_.tick(a=Observation(job=job(), state=VIOLATED))
    fleet_.session.permit(is_first=False)
    with nullcontext() if policy == "continue" else pytest.raises(Refused, match="was violated"):
        fleet_.session.permit(is_first=True)


def test_a_cluster_that_is_halted_alone_is_interrupted() -> None:
    fleet_ = Fleet()
    fleet_.tick()
    assert not fleet_.tick(a=Observation(job=job("failed"), state=HALTED))
    assert fleet_.words == {"a": "interrupted", "b": "skipped", "c": "skipped", "d": "skipped"}


def test_an_unknown_cluster_keeps_its_place_until_patience_ends() -> None:
    fleet_ = Fleet(patience="1m")
    fleet_.tick()
    fleet_.agents["a"].see(Observation(error="timed out"), lasts=59.0)
    assert step(fleet_.session)
    assert fleet_.words == {"a": "running", "b": "pending", "c": "pending", "d": "pending"}
    fleet_.agents["a"].see(Observation(error="timed out"), lasts=61.0)
    assert not step(fleet_.session), "it may be under test, so no other one takes its place"
    assert fleet_.words == {"a": "running", "b": "pending", "c": "pending", "d": "pending"}
    assert fleet_exit_code(fleet_.session.state, [Observation(error="timed out")]) is Exit.INCONCLUSIVE


def test_an_unknown_cluster_that_has_not_begun_is_left_out() -> None:
    fleet_ = Fleet(patience="1m")
    fleet_.agents["a"].see(Observation(error="timed out"), lasts=61.0)
    assert fleet_.tick()
    assert fleet_.words["a"] == "skipped"
    assert "a is skipped: unknown: it cannot be read: timed out" in fleet_.text


def test_a_pod_that_does_not_begin_is_given_up() -> None:
    fleet_ = Fleet(patience="1m")
    fleet_.tick()
    fleet_.agents["a"].see(Observation(job=job(reason="ErrImagePull: no such image")), 61.0, has_created=True)
    assert step(fleet_.session)
    assert fleet_.wanted["a"] == "cancel"
    assert fleet_.agents["a"].why == "its pod did not start within 1m: ErrImagePull: no such image"
    fleet_.agents["a"].see(Observation(), has_created=True, given_up=fleet_.agents["a"].why)
    assert step(fleet_.session)
    assert "a is skipped: its pod did not start within 1m: ErrImagePull" in fleet_.text


@pytest.mark.parametrize(
    ("observation", "more", "why"),
    [
        (Observation(job=job("failed", reason="error: no rights")), {}, "error: no rights"),
        (Observation(state=FRESH), {"has_created": True}, "its Job was deleted before the day began"),
        (Observation(), {"given_up": "may not create jobs"}, "may not create jobs"),
        (Observation(), {"lasts": 700.0, "problem": "500: etcd is gone"}, "500: etcd is gone"),
        (Observation(job=job(day="d0")), {}, "its Job is for day d0"),
    ],
)
def test_what_was_never_run_is_skipped_and_said_why(observation: Observation, more: dict[str, Any], why: str) -> None:
    fleet_ = Fleet()
    fleet_.tick()
    fleet_.agents["a"].see(observation, **more)
    assert step(fleet_.session)
    assert fleet_.words["a"] == "skipped"
    assert fleet_.words["b"] == "running"
    assert why in fleet_.text


def test_a_job_that_is_about_to_be_created_is_awaited() -> None:
    """The look before its creation shows nothing, and must not be taken for a Job that was deleted."""
    fleet_ = Fleet()
    fleet_.tick()
    fleet_.agents["a"].see(Observation(), has_created=False)
    assert step(fleet_.session)
    assert (fleet_.words["a"], fleet_.wanted["a"]) == ("running", "run")


@pytest.mark.parametrize(("policy", "is_next"), [("stop", False), ("halt", False), ("continue", True)])
def test_nothing_begins_while_an_undo_may_be_pending(policy: str, is_next: bool) -> None:
    fleet_ = Fleet(maxClusters=2, onViolated=policy)
    fleet_.tick()
    stuck = Observation(job=job("failed"), state=RUNNING, pending_undo=("r-one",))
    assert fleet_.tick(a=stuck, b=OVER) == is_next
    assert (fleet_.words["c"] == "running") == is_next
    assert fleet_.words["a"] == "running"


def test_a_day_that_was_left_alone_gets_one_more_job() -> None:
    fleet_ = Fleet()
    fleet_.tick()
    fleet_.agents["a"].see(Observation(job=job("failed"), state=RUNNING), has_created=False)
    assert step(fleet_.session)
    assert (fleet_.words["a"], fleet_.wanted["a"]) == ("running", "run")
