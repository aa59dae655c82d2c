"""Durations measured from the first step, and their bounds."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult, StepResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.page.measures import Measure, measures
from tests.kit.small_timelines import node, pod, timeline_of, workload

FAULT = 100.0
RS = "ReplicaSet/web-1"
Line = tuple[float, str, str, Any]
LISTED: tuple[Line, ...] = ((90, "nodes", "LIST", node("True")), (90, "nodes", "LIST", node("True", name="n2")))


def result(*verdicts: Verdict, steps: bool = True) -> RunResult:
    step = StepResult("off", "poweroff", "n1", FAULT, FAULT, "answered", "", ProofStatus.PROVEN, "off")
    return RunResult(
        1, "r", "e", "t", Status.HELD, 0, "", False, "", "", 90, 300, {"victim": ("n1",)}, (step,) if steps else (), (),
        verdicts,
    )  # fmt: skip


def by_name(*lines: Line, verdicts: tuple[Verdict, ...] = ()) -> dict[str, Measure]:
    return {measure.name: measure for measure in measures(result(*verdicts), timeline_of(*LISTED, *lines))}


def test_node_that_is_lost_and_ready_again() -> None:
    found = by_name((105, "nodes", "MODIFIED", node("False")), (140, "nodes", "MODIFIED", node("Unknown")),
                    (160, "nodes", "MODIFIED", node("True")), (170, "nodes", "MODIFIED", node("True")))  # fmt: skip
    assert set(found) == {"NotReady after", "Recovered after"}
    assert (found["NotReady after"].seconds, found["NotReady after"].about) == (5, "n1")
    assert found["Recovered after"].seconds == 60


@pytest.mark.parametrize("last", [("MODIFIED", node("False")), ("DELETED", node("True"))])
def test_node_that_is_not_ready_at_the_end_has_not_recovered(last: tuple[str, Any]) -> None:
    found = by_name((105, "nodes", "MODIFIED", node("False")), (110, "nodes", "MODIFIED", node("True")),
                    (120, "nodes", *last))["Recovered after"]  # fmt: skip
    assert (found.seconds, found.about) == (None, "n1 not Ready at the end")


def test_changes_of_other_nodes_and_before_the_fault_do_not_count() -> None:
    lines: tuple[Line, ...] = (
        (95, "nodes", "MODIFIED", node("False")),
        (96, "nodes", "MODIFIED", node("True")),
        (105, "nodes", "MODIFIED", node("False", name="n2")),
    )
    assert by_name(*lines) == {}


def test_pods_that_end_and_their_replacements() -> None:
    found = by_name(
        (91, "pods", "LIST", pod("Running", ready=True, uid="a", name="a", owner=RS)),
        (91, "pods", "LIST", pod("Running", ready=True, uid="b", name="b", owner=RS)),
        (91, "pods", "LIST", pod("Running", ready=True, uid="c", name="c", owner="DaemonSet/agent")),
        (91, "pods", "LIST", pod("Running", ready=True, uid="d", name="d", owner=RS, on="n2")),
        (107, "pods", "MODIFIED", pod("Succeeded", uid="a", name="a", owner=RS)),
        (109, "pods", "DELETED", pod("Running", uid="b", name="b", owner=RS)),
        (110, "pods", "ADDED", pod("Pending", uid="e", name="e", owner=RS, on="n2")),
        (112, "pods", "ADDED", pod("Running", ready=True, uid="f", name="f", owner="DaemonSet/agent", on="n2")),
        (114, "pods", "MODIFIED", pod("Running", ready=True, uid="e", name="e", owner=RS, on="n2")),
        (115, "pods", "ADDED", pod("Running", ready=True, uid="g", name="g", owner=RS, on="n1")),
    )
    ended, replaced = found["Last pod ended after"], found["Replacements Ready after"]
    assert (ended.seconds, ended.about) == (9, "2 of 3 pods ended")
    assert (replaced.seconds, replaced.about) == (14, "1 of 1 replacements")


def test_replacement_that_is_never_ready() -> None:
    found = by_name((91, "pods", "LIST", pod("Running", uid="a", owner=RS)),
                    (110, "pods", "ADDED", pod("Pending", uid="e", owner=RS, on=None)))  # fmt: skip
    measure = found["Replacements Ready after"]
    assert (measure.seconds, measure.about, measure.is_late) == (None, "0 of 1 replacements were Ready", False)


@pytest.mark.parametrize(
    ("lines", "seconds", "about"),
    [
        ([(90, 3), (104, 1), (110, 3)], 6, "web"),
        ([(90, 3), (104, 1), (110, 3), (111, 2), (130, 3)], 19, "web"),
        ([(90, 3), (95, 1), (110, 3)], 10, "web"),  # counted from the fault
        ([(90, 3), (104, 1), (150, 2)], 46, "web, until the end"),
    ],
)
def test_time_without_enough_replicas(lines: list[tuple[float, int]], seconds: float, about: str) -> None:
    found = by_name(*((t, "deployments", "MODIFIED", workload(available)) for t, available in lines))
    assert (found["Not available for"].seconds, found["Not available for"].about) == (seconds, about)


def test_workload_that_was_short_only_before_the_fault_is_not_named() -> None:
    assert by_name((91, "deployments", "LIST", workload(1)), (99, "deployments", "MODIFIED", workload(3))) == {}


def wanted(
    status: Status, at: float, deadline: float | None, *evidence: int, expected: str = "", operator: str = "within"
) -> Verdict:
    return Verdict(
        "v", "node-condition", status, "", expected, at=at, start=100, deadline=deadline, evidence=evidence,
        operator=operator,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "bound", "is_late"),
    [
        ([wanted(Status.HELD, 105, 140, 2)], 40, False),
        ([wanted(Status.HELD, 105, 140, 2), wanted(Status.HELD, 105, 120, 2)], 20, False),
        ([wanted(Status.HELD, 105, 140, 0)], None, False),  # about something else
        ([wanted(Status.HELD, 105, None, 2)], None, False),
        ([wanted(Status.HELD, 140, 140, 2, operator="always")], None, False),
        ([wanted(Status.HELD, 105, 105, 2, operator="always")], None, False),  # its end is the moment, by chance
        ([wanted(Status.VIOLATED, 105, 140, 2, operator="never")], None, False),  # violated by the moment
        ([wanted(Status.HELD, 105, 140, 2, operator="")], 40, False),  # of 0.1.0: only within is decided early
        ([wanted(Status.VIOLATED, 105, 140, 2, operator="")], None, False),
        ([wanted(Status.VIOLATED, 103, 103, 2)], 3, True),
        ([wanted(Status.VIOLATED, 103, 103, 0, expected="Ready is False within 3s of off")], 3, True),
        ([wanted(Status.VIOLATED, 103, 103, 0, expected="MemoryPressure is True within 3s")], None, False),
        ([wanted(Status.INCONCLUSIVE, 103, 103, 2)], None, False),
        ([], None, False),
    ],
)
def test_bound_of_a_duration(verdicts: list[Verdict], bound: float | None, is_late: bool) -> None:
    found = by_name((105, "nodes", "MODIFIED", node("False")), verdicts=tuple(verdicts))["NotReady after"]
    assert (found.bound, found.is_late) == (bound, is_late)


def test_no_measures_without_a_step_or_observations() -> None:
    assert measures(result(), Timeline()) == []
    timeline = timeline_of(*LISTED, (105, "nodes", "MODIFIED", node("False")))
    assert measures(result(steps=False), timeline) == []
