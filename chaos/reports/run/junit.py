"""JUnit documents in the common schema, and ``junit.xml`` for CI systems, with a case for each step, verdict and undo.

The schema is Windyroad's XSD, a subset of Jenkins'. A violated verdict is a failure. An inconclusive one must not look
green, but is no failure of the cluster: an error of type "inconclusive". One that is violated as known is skipped, as
by an xfail of pytest. A step without proof that it took effect and a pending undo are errors, too. If all of them
passed but the run did not, as a refused run, the run itself is an error.

Readers take cases with the same name for retries of one test, and show the best of them: no two cases of a suite have
the same name. They show either the message or the text of an element, so the text has the message, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

from chaos.core.action import ProofStatus
from chaos.core.errors import Exit
from chaos.core.result import RunResult
from chaos.core.text import on_node, printable
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.outline import (
    SIMULATED,
    assumed_facts,
    evidence,
    format_offset,
    format_utc,
    name_of,
    pending_undo,
    run_details,
    sections,
)
from chaos.reports.run.renderer import Renderer
from chaos.reports.run.steps import step_text
from chaos.reports.run.verdicts import leftovers, notes, rows


@dataclass(frozen=True, slots=True)
class Case:
    """A test case. ``outcome`` is failure, error, skipped or "" for passed; ``type`` is the error type."""

    classname: str
    name: str
    seconds: float = 0.0
    outcome: str = ""
    type: str = ""
    message: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """Test cases. ``timestamp``: xs:dateTime in UTC without a zone, as the schema requires."""

    name: str
    timestamp: str
    seconds: float
    properties: Sequence[tuple[str, str]]
    cases: Sequence[Case]
    output: Sequence[str]


def junit_document(suites: Iterable[Suite]) -> str:
    """The XML document, ending in a newline."""
    root = ET.Element("testsuites")  # no attributes: the schema has none here
    for number, suite in enumerate(suites):
        _add_suite(root, number, suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_suite(root: ET.Element, number: int, suite: Suite) -> None:
    outcomes = [case.outcome for case in suite.cases]
    attributes = {
        "package": "nodefall",
        "id": str(number),
        "name": printable(suite.name),
        "hostname": "localhost",
        "timestamp": suite.timestamp,
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
        "time": _seconds(suite.seconds),
    }
    element = ET.SubElement(root, "testsuite", attributes)
    properties = ET.SubElement(element, "properties")
    for name, value in suite.properties:
        ET.SubElement(properties, "property", {"name": printable(name), "value": printable(value)})
    for case in _distinct(suite.cases):
        _add_case(element, case)
    ET.SubElement(element, "system-out").text = "\n".join(map(printable, suite.output))
    ET.SubElement(element, "system-err")


def _distinct(cases: Iterable[Case]) -> Iterator[Case]:
    """The cases with printable names, each with a number from the second case of one name on."""
    taken: set[str] = set()
    for case in cases:
        name = first = printable(case.name)
        number = 1
        while name in taken:
            number += 1
            name = f"{first} ({number})"
        taken.add(name)
        yield replace(case, name=name)


def _add_case(suite: ET.Element, case: Case) -> None:
    attributes = {"name": case.name, "classname": case.classname, "time": _seconds(case.seconds)}
    element = ET.SubElement(suite, "testcase", attributes)
    if case.outcome:
        error = {} if case.outcome == "skipped" else {"type": case.type}
        error["message"] = printable(case.message)
        lines = dict.fromkeys(map(printable, (case.message, *case.details)))
        ET.SubElement(element, case.outcome, error).text = "\n".join(lines)


def _seconds(value: float) -> str:
    return f"{max(0.0, value):.3f}"


_OUTCOMES = {
    Status.VIOLATED: "failure", Status.INCONCLUSIVE: "error", Status.PENDING: "error", Status.KNOWN: "skipped",
}  # fmt: skip


def render(result: RunResult, timeline: Timeline) -> str:
    """The XML document, ending in a newline."""
    found = [*_step_cases(result), *_verdict_cases(result, timeline), *_undo_cases(result)]
    if result.exit_code != Exit.HELD and all(case.outcome in ("", "skipped") for case in found):
        found.append(_run_case(result))
    series = f", run {result.series}" if result.series else ""
    cases = [replace(case, name=f"{case.name}{series}") for case in found]
    properties = [("Verdict", result.headline), *run_details(result)]
    took, begun = result.ended - result.started, _timestamp(result.started)
    return junit_document([Suite(f"{name_of(result)}{series}", begun, took, properties, cases, [*_system_out(result)])])


def _run_case(result: RunResult) -> Case:
    """The run as a whole, which did not hold for a reason that is none of a step, a verdict or an undo."""
    took = result.ended - result.started
    return Case(_classname(result, "run"), "the run is complete", took, "error", result.ending, result.headline)


def _classname(result: RunResult, group: str) -> str:
    return f"nodefall.{printable(result.experiment)}.{group}"


def _step_cases(result: RunResult) -> Iterator[Case]:
    for step in result.steps:
        took = (step.returned - step.begin) if step.begin is not None and step.returned is not None else 0.0
        outcome = "" if step.proof_status is ProofStatus.PROVEN else "error"
        name, sent = f"{on_node(step.step, step.node)} is proven", f"sent: {step.command}"
        yield Case(_classname(result, "steps"), name, took, outcome, "unproven", step_text(step), (sent,))


def _verdict_cases(result: RunResult, timeline: Timeline) -> Iterator[Case]:
    cited, found = evidence(result, timeline), rows(result)
    for section in sections(result):
        for row in found[section.key]:
            verdict = row.verdict
            took = verdict.at - verdict.start if verdict.at is not None and verdict.start is not None else 0.0
            facts = [
                f"evidence {e.seq} {format_offset(e.t, row.start)}: {e.what}"
                for e in map(cited.__getitem__, verdict.evidence)
            ]
            texts = [row.because, f"expected: {verdict.expected}"]
            texts += [f"observed: {row.observed}"] if row.observed else []
            outcome, message = _OUTCOMES.get(verdict.shown, ""), row.sentence or row.because
            message = f"{verdict.shown.words}: {verdict.known}" if verdict.shown is Status.KNOWN else message
            classname, kind = _classname(result, section.key), _error_type(verdict)
            yield Case(classname, _name(verdict), took, outcome, kind, message, (*texts, *facts))


def _name(verdict: Verdict) -> str:
    """The name of the expectation; without one, its assertion and what it expects."""
    is_unnamed = verdict.name.removeprefix("recovery: ") == verdict.assertion
    return f"{verdict.name}: {verdict.expected}" if is_unnamed and verdict.expected else verdict.name


def _error_type(verdict: Verdict) -> str:
    return "inconclusive" if verdict.status is Status.PENDING else str(verdict.status)


def _undo_cases(result: RunResult) -> Iterator[Case]:
    for undo in result.undo:
        name, outcome = f"{on_node(undo.step, undo.node)} is undone", "" if undo.proven else "error"
        yield Case(_classname(result, "undo"), name, 0.0, outcome, "undo pending", undo.because)


def _system_out(result: RunResult) -> Iterator[str]:
    yield from (f"undo pending: {line}" for line in pending_undo(result))
    yield from (f"left behind: {line}" for line in leftovers(result))
    yield from (f"assumed: {line}" for line in assumed_facts(result))
    yield from (f"note: {line}" for line in notes(result))
    if result.simulated:
        yield SIMULATED


def _timestamp(t: float) -> str:
    """Format as xs:dateTime in UTC without a zone, as the schema requires."""
    day, _, clock = format_utc(t).removesuffix(" UTC").partition(" ")
    return f"{day}T{clock}" if clock else "1970-01-01T00:00:00"


RENDERER = Renderer("junit", "junit.xml", "test cases for a CI system", render)
