"""JUnit report: the schema that CI systems accept, and the outcome of each verdict."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import msgspec
import pytest
from msgspec import structs

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult, UndoResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Known, Status, Verdict
from chaos.reports.run import junit

Made = tuple[RunResult, Timeline]
# Windyroad's JUnit.xsd: required attributes, allowed ones, and a pattern of the children, each followed by a space.
SHAPE: dict[str, tuple[set[str], set[str], str]] = {
    "testsuites": (set(), set(), "(testsuite )*"),
    "testsuite": (
        {"name", "timestamp", "hostname", "tests", "failures", "errors", "time", "package", "id"},
        {"skipped"},
        "properties (testcase )*system-out system-err ",
    ),
    "properties": (set(), set(), "(property )*"),
    "property": ({"name", "value"}, set(), ""),
    "testcase": ({"name", "classname", "time"}, set(), "((failure|error|skipped) )?"),
    "failure": ({"type"}, {"message"}, ""),
    "error": ({"type"}, {"message"}, ""),
    "skipped": (set(), {"message"}, ""),
    "system-out": (set(), set(), ""),
    "system-err": (set(), set(), ""),
}


def parse(made: Made) -> ET.Element:
    return ET.fromstring(junit.render(*made))  # noqa: S314 (our own output)


def outcome(case: ET.Element) -> str:
    return " ".join(f"{child.tag}:{child.get('type')}" for child in case)


def test_document_has_the_common_schema(recorded: Made) -> None:
    for element in parse(recorded).iter():
        required, allowed, children = SHAPE[element.tag]
        assert required <= set(element.attrib) <= required | allowed
        assert re.fullmatch(children, "".join(f"{child.tag} " for child in element)), element.tag


def test_counts_and_times(recorded: Made) -> None:
    suite = parse(recorded)[0]
    cases = suite.findall("testcase")
    assert suite.get("name") == "graceful-poweroff (simulated)"
    assert suite.get("timestamp") == "2026-11-21T03:35:33"
    assert int(suite.get("tests", "")) == len(cases) == 8
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    assert [c.get("classname") for c in cases][::3] == [
        "nodefall.graceful-poweroff.steps",
        "nodefall.graceful-poweroff.hypothesis",
        "nodefall.graceful-poweroff.recovery",
    ]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.HELD, ""),
        (Status.VIOLATED, "failure:violated"),
        (Status.INCONCLUSIVE, "error:inconclusive"),
        (Status.PENDING, "error:inconclusive"),
    ],
)
def test_verdicts(status: Status, expected: str, recorded: Made) -> None:
    result, timeline = recorded
    verdict = Verdict("pods end", "pods", status, "one did not", at=12.5, start=10.0)
    changed = msgspec.structs.replace(
        result, steps=(), undo=(), steady_state=(), hypothesis=(verdict,), recovery=(), exit_code=0
    )
    (case,) = parse((changed, timeline))[0].findall("testcase")
    assert outcome(case) == expected
    assert case.get("time") == "2.500"
    if expected:
        assert case[0].get("message") == "one did not"


def cases(result: RunResult, timeline: Timeline) -> list[ET.Element]:
    return parse((result, timeline))[0].findall("testcase")


def test_no_two_cases_have_one_name(recorded: Made) -> None:
    result, timeline = recorded
    one, two = (Verdict("pods", "pods", status, "", expected="2 pods") for status in (Status.HELD, Status.VIOLATED))
    named = Verdict("they end", "pods", Status.VIOLATED, "one did not")
    undecided = Verdict("recovery: pods", "pods", Status.INCONCLUSIVE, "not judged")
    same = structs.replace(
        result, steps=(), undo=(), steady_state=(one, named), hypothesis=(two, named), recovery=(undecided,)
    )
    found = {case.get("name"): outcome(case) for case in cases(same, timeline)}
    assert found == {
        "pods: 2 pods": "",
        "they end": "failure:violated",
        "pods: 2 pods (2)": "failure:violated",
        "they end (2)": "failure:violated",
        "recovery: pods": "error:inconclusive",
    }
    suite = parse((structs.replace(same, series="2 of 5"), timeline))[0]
    assert suite.get("name") == "graceful-poweroff (simulated), run 2 of 5"
    assert [case.get("name") for case in suite.iter("testcase")][:3] == [
        "pods: 2 pods, run 2 of 5",
        "they end, run 2 of 5",
        "pods: 2 pods, run 2 of 5 (2)",
    ]


@pytest.mark.parametrize(
    ("headline", "exit_code", "expected"),
    [
        ("refused: it requires more", 4, "error:refused"),
        ("aborted: a step could not be sent", 2, "error:aborted"),
        ("interrupted by SIGINT before every verdict was decided", 130, "error:interrupted"),
        ("all expectations held, but the report is incomplete", 2, "error:inconclusive"),
    ],
)
def test_a_run_that_did_not_hold_is_green_nowhere(headline: str, exit_code: int, expected: str, recorded: Made) -> None:
    result, timeline = recorded
    held = Verdict("pods end", "pods", Status.HELD, "all did")
    changed = structs.replace(
        result, steps=(), undo=(), steady_state=(), hypothesis=(held,), recovery=(), headline=headline,
        status=Status.INCONCLUSIVE, exit_code=exit_code,
    )  # fmt: skip
    *others, run = cases(changed, timeline)
    assert [outcome(case) for case in others] == [""]
    assert (run.get("name"), outcome(run), run[0].text) == ("the run is complete", expected, headline)


def test_what_is_violated_as_known_is_skipped(recorded: Made) -> None:
    result, timeline = recorded
    known = Known(">=v1.31", "https://example.org/1", "it is late")
    verdict = Verdict("pods end", "pods", Status.VIOLATED, "one did not", sentence="One did not end", known=known)
    changed = msgspec.structs.replace(
        result, steps=(), undo=(), steady_state=(), hypothesis=(verdict,), recovery=(), exit_code=0
    )
    suite = parse((changed, timeline))[0]
    (case,) = suite.findall("testcase")
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "0", "1")
    assert case[0].tag == "skipped"
    assert case[0].get("message") == (
        "violated, as known: known of Kubernetes >=v1.31: it is late (https://example.org/1)"
    )
    assert "one did not" in (case[0].text or "")


@pytest.mark.parametrize(
    ("status", "expected"),
    [(ProofStatus.PROVEN, ""), (ProofStatus.DISPROVEN, "error:unproven"), (ProofStatus.UNPROVEN, "error:unproven")],
)
def test_steps_must_be_proven(status: ProofStatus, expected: str, recorded: Made) -> None:
    result, timeline = recorded
    step = msgspec.structs.replace(result.steps[0], proof_status=status)
    changed = msgspec.structs.replace(
        result, steps=(step,), undo=(), steady_state=(), hypothesis=(), recovery=(), exit_code=0
    )
    (case,) = parse((changed, timeline))[0].findall("testcase")
    assert case.get("name") == "power-off on ra-worker is proven"
    assert outcome(case) == expected


@pytest.mark.parametrize(("proven", "expected"), [(True, ""), (False, "error:undo pending")])
def test_pending_undo_is_an_error(proven: bool, expected: str, recorded: Made) -> None:
    result, timeline = recorded
    undo = (UndoResult("cut", "partition", "ra-worker", proven, "no answer"),)
    changed = msgspec.structs.replace(
        result, steps=(), undo=undo, steady_state=(), hypothesis=(), recovery=(), exit_code=0
    )
    (case,) = parse((changed, timeline))[0].findall("testcase")
    assert outcome(case) == expected
