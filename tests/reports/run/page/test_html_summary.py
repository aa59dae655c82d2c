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
from chaos.reports.run.page.html_summary import render_summary
from tests.kit.small_timelines import node, timeline_of

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
            "Foreign fault on n2 Expected no change of a node by anyone else Observed n2 was cordoned by kubectl",
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
    page = render_summary(made, Timeline())
    found = re.search(r'<section class="decisive".*?</section>', page)
    assert (words(found[0]) if found else "") == decided


def test_tally_and_sentence_are_said_once() -> None:
    made = result(Status.VIOLATED, verdict(Status.VIOLATED))
    assert words(render_summary(made, Timeline())).startswith("✗ violated e on n1 · 1970")
    counted = msgspec.structs.replace(
        made, headline="1 of 2 violated: it broke", tally="1 of 2 violated", sentence="it broke"
    )
    page = words(render_summary(counted, Timeline()))
    assert page.startswith("✗ 1 of 2 violated e on n1 · 1970")
    assert (page.count("1 of 2 violated"), page.count("it broke")) == (1, 1)


def test_aborted_run_says_so_and_has_the_sentence_of_the_condition() -> None:
    made = result(Status.INCONCLUSIVE, abort=(ABORT,), headline=ABORTED)
    page = words(render_summary(made, Timeline()))
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
    page = render_summary(result(Status.VIOLATED, verdict(Status.VIOLATED)), timeline)
    band = words(re.findall(r'<div class="band">.*?</div>', page, re.DOTALL)[0])
    assert band == "fault +0s off on n1 +40s ✗ violated +50s undo begins +1m Ready again +1m1s undone"
    assert "NotReady after 5s" in words(page)
    assert "Recovered after 1m" in words(page)


def test_late_duration_is_marked_with_its_bound() -> None:
    late = Verdict(
        "noticed", "node-condition", Status.VIOLATED, "late", at=105, deadline=103, evidence=(1,), operator="within"
    )
    timeline = timeline_of((90, "nodes", "LIST", node("True")), (105, "nodes", "MODIFIED", node("False")))
    page = render_summary(result(Status.VIOLATED, late), timeline)
    assert part(page, "late") == "NotReady after 5s limit 3s n1"


def test_left_behind_is_listed_or_denied(recorded: Made) -> None:
    made, timeline = recorded
    assert "Nothing was left behind." in render_summary(made, timeline)
    left = msgspec.structs.replace(made, leftovers=("namespace nodefall-1",))
    page = render_summary(left, timeline)
    assert "Left behind namespace nodefall-1" in words(page)
    assert "Nothing was left behind" not in page
    assert page.index("Left behind") < page.index('class="measures"')  # before what can be read later
