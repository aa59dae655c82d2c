"""Top of the page: what decided, the band of moments, and durations with their bounds."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from chaos.core.action import ProofStatus
from chaos.core.recording import ActionRecord
from chaos.core.result import ForeignFault, RunResult, StepResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.page.header import render_header
from chaos.reports.run.page.measures import Measure, measures
from tests.kit.small_timelines import node, pod, timeline_of, workload

Made = tuple[RunResult, Timeline]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def part(html: str, name: str) -> str:
    """Words of the element with a class, up to the end of its kind of element."""
    found = re.search(rf'<(\w+) class="{name}".*?</\1>', html, re.DOTALL)
    return words(found[0]) if found else ""


def result(status: Status, *hypothesis: Verdict, proof: ProofStatus = ProofStatus.PROVEN, **more: Any) -> RunResult:
    step = StepResult("off", "poweroff", "n1", 100, 101, "answered", "", proof, "n1 stayed on")
    made = RunResult(
        1, "r", "e", "the title", status, 0, f"{status}: the headline", False, "", "", 90, 200, {"victim": ("n1",)},
        (step,), (), hypothesis,
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)


def verdict(status: Status) -> Verdict:
    return Verdict("pods move", "pods", status, "one did not", "all moved", "one is left", at=140, deadline=140)


PODS = "Expectation pods move Expected all moved Observed one is left When 40s after off, 00:02:20 UTC"
ABORT = Verdict(
    "nodes-ready", "nodes-ready", Status.VIOLATED, "too few", "all", "one", at=99.9, sentence="A node was lost"
)
ABORTED = "aborted: abort condition nodes-ready: A node was lost"
FOREIGN = ForeignFault("n2", "cordon", "n2 was cordoned by kubectl", "kubectl", 110, 109)


@pytest.mark.parametrize(
    ("made", "decided"),
    [
        (result(Status.VIOLATED, verdict(Status.VIOLATED)), PODS),
        (
            result(Status.INCONCLUSIVE, verdict(Status.INCONCLUSIVE)),
            PODS,
        ),
        (
            result(Status.INCONCLUSIVE, verdict(Status.INCONCLUSIVE), proof=ProofStatus.DISPROVEN),
            "Step off on n1 Expected a proven effect Observed disproven: n1 stayed on",
        ),
        (
            result(Status.INCONCLUSIVE, proof=ProofStatus.UNPROVEN, foreign_faults=(FOREIGN,)),
            "Foreign fault on n2 Expected no one else changed a node Observed n2 was cordoned by kubectl",
        ),
        # A violated expectation stands whatever else happened.
        (
            result(Status.VIOLATED, verdict(Status.VIOLATED), foreign_faults=(FOREIGN,)),
            PODS,
        ),
        (
            result(Status.INCONCLUSIVE, abort=(ABORT,), headline=ABORTED),
            "Aborted by nodes-ready Expected all Observed one When 0.1s before off, 00:01:39 UTC",
        ),
        (
            result(Status.VIOLATED, verdict(Status.VIOLATED), steps=()),
            "Expectation pods move Expected all moved Observed one is left When 1970-01-01 00:02:20 UTC",
        ),
        (result(Status.HELD, verdict(Status.HELD)), ""),
    ],
)
def test_what_decided(made: RunResult, decided: str) -> None:
    page = render_header(made, Timeline())
    found = re.search(r'<section class="decisive".*?</section>', page)
    assert (words(found[0]) if found else "") == decided


def test_tally_and_sentence_are_said_once() -> None:
    made = result(Status.VIOLATED, verdict(Status.VIOLATED))
    assert words(render_header(made, Timeline())).startswith("✗ violated e on n1 · 1970")
    counted = msgspec.structs.replace(
        made, headline="1 of 2 violated: it broke", tally="1 of 2 violated", sentence="it broke"
    )
    page = words(render_header(counted, Timeline()))
    assert page.startswith("✗ 1 of 2 violated e on n1 · 1970")
    assert (page.count("1 of 2 violated"), page.count("it broke")) == (1, 1)


def test_aborted_run_says_so_and_has_the_sentence_of_the_condition() -> None:
    made = result(Status.INCONCLUSIVE, abort=(ABORT,), headline=ABORTED)
    page = words(render_header(made, Timeline()))
    assert page.startswith("■ aborted e on n1 · 1970")
    assert page.count("A node was lost") == 1
    assert "✗ aborted" in page


def test_moments_from_fault_to_undo() -> None:
    timeline = timeline_of(
        (90, "nodes", "LIST", node("True")),
        (100, "action", "poweroff", ActionRecord("off", "begin")),
        (105, "nodes", "MODIFIED", node("False")),
        (150, "action", "poweroff", ActionRecord("off", "undo")),
        (160, "nodes", "MODIFIED", node("True")),
        (161, "action", "poweroff", ActionRecord("off", "undone")),
    )
    page = render_header(result(Status.VIOLATED, verdict(Status.VIOLATED)), timeline)
    band = words(re.findall(r'<div class="band">.*?</div>', page, re.DOTALL)[0])
    assert band == "fault +0s off on n1 +40s ✗ violated +50s undo begins +1m Ready again +1m1s undone"
    assert "NotReady after 5s" in words(page)
    assert "Recovered after 1m" in words(page)


def test_late_duration_is_marked_with_its_bound() -> None:
    late = Verdict(
        "noticed", "node-condition", Status.VIOLATED, "late", at=105, deadline=103, evidence=(1,), operator="within"
    )
    timeline = timeline_of((90, "nodes", "LIST", node("True")), (105, "nodes", "MODIFIED", node("False")))
    page = render_header(result(Status.VIOLATED, late), timeline)
    assert part(page, "late") == "NotReady after 5s limit 3s n1"


def test_left_behind_is_listed_or_denied(recorded: Made) -> None:
    made, timeline = recorded
    assert "Nothing was left behind." in render_header(made, timeline)
    left = msgspec.structs.replace(made, leftovers=("namespace nodefall-1",))
    page = render_header(left, timeline)
    assert "Left behind namespace nodefall-1" in words(page)
    assert "Nothing was left behind" not in page
    assert page.index("Left behind") < page.index('class="measures"')  # before what can be read later


FAULT = 100.0
RS = "ReplicaSet/web-1"
Line = tuple[float, str, str, Any]
LISTED: tuple[Line, ...] = ((90, "nodes", "LIST", node("True")), (90, "nodes", "LIST", node("True", name="n2")))


def measured(*verdicts: Verdict, steps: bool = True) -> RunResult:
    step = StepResult("off", "poweroff", "n1", FAULT, FAULT, "answered", "", ProofStatus.PROVEN, "off")
    return RunResult(
        1, "r", "e", "t", Status.HELD, 0, "", False, "", "", 90, 300, {"victim": ("n1",)}, (step,) if steps else (), (),
        verdicts,
    )  # fmt: skip


def by_name(*lines: Line, verdicts: tuple[Verdict, ...] = ()) -> dict[str, Measure]:
    return {measure.name: measure for measure in measures(measured(*verdicts), timeline_of(*LISTED, *lines))}


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
    assert measures(measured(), Timeline()) == []
    timeline = timeline_of(*LISTED, (105, "nodes", "MODIFIED", node("False")))
    assert measures(measured(steps=False), timeline) == []
