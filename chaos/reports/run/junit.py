"""``junit.xml`` for CI systems, in the common JUnit schema (Windyroad's XSD, a subset of Jenkins').

A violated verdict is a failure. An inconclusive one must not look green, but is no failure of the cluster: an error of
type "inconclusive". A step without proof that it took effect and a pending undo are errors, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from chaos.core.action import ProofStatus
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
    origin,
    pending_undo,
    run_details,
    sections,
    step_text,
)
from chaos.reports.run.renderer import Renderer
from chaos.reports.run.verdict_rows import leftovers, notes, rows

_OUTCOMES = {Status.VIOLATED: "failure", Status.INCONCLUSIVE: "error", Status.PENDING: "error"}


@dataclass(frozen=True, slots=True)
class _Case:
    """A test case. ``outcome`` is failure, error or "" for passed; ``type`` is the error type."""

    group: str
    name: str
    seconds: float = 0.0
    outcome: str = ""
    type: str = ""
    message: str = ""
    details: tuple[str, ...] = ()  # without the message


def render(result: RunResult, timeline: Timeline) -> str:
    """The XML document, ending in a newline."""
    cases = [*_step_cases(result), *_verdict_cases(result, timeline), *_undo_cases(result)]
    totals = {
        "tests": str(len(cases)),
        "failures": str(sum(c.outcome == "failure" for c in cases)),
        "errors": str(sum(c.outcome == "error" for c in cases)),
        "time": _seconds(result.ended - result.started),
    }
    root = ET.Element("testsuites")  # no attributes: the schema has none here
    attributes = {"package": "nodefall", "id": "0", "name": printable(name_of(result)), "hostname": "localhost"}
    suite = ET.SubElement(root, "testsuite", {**attributes, "timestamp": _timestamp(result.started), **totals})
    properties = ET.SubElement(suite, "properties")
    for name, value in [("Verdict", result.headline), *run_details(result)]:
        ET.SubElement(properties, "property", {"name": name, "value": printable(value)})
    for case in cases:
        _add_case(suite, case, result.experiment)
    ET.SubElement(suite, "system-out").text = "\n".join(printable(line) for line in _system_out(result))
    ET.SubElement(suite, "system-err")
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _step_cases(result: RunResult) -> Iterator[_Case]:
    for step in result.steps:
        took = (step.returned - step.begin) if step.begin is not None and step.returned is not None else 0.0
        outcome = "" if step.proof_status is ProofStatus.PROVEN else "error"
        name = f"{on_node(step.step, step.node)} is proven"
        yield _Case("steps", name, took, outcome, "unproven", step_text(step), (f"sent: {step.command}",))


def _verdict_cases(result: RunResult, timeline: Timeline) -> Iterator[_Case]:
    cited, start = evidence(result, timeline), origin(result)
    found = rows(result)
    for section in sections(result):
        for row in found[section.key]:
            verdict = row.verdict
            took = verdict.at - verdict.start if verdict.at is not None and verdict.start is not None else 0.0
            facts = [
                f"evidence {e.seq} {format_offset(e.t, start)}: {e.what}"
                for e in map(cited.__getitem__, verdict.evidence)
            ]
            texts = [*([row.because] if row.sentence else []), f"expected: {verdict.expected}"]
            texts += [f"observed: {row.observed}"] if row.observed else []
            outcome = _OUTCOMES.get(verdict.status, "")
            kind = _error_type(verdict)
            yield _Case(section.key, verdict.name, took, outcome, kind, row.sentence or row.because, (*texts, *facts))


def _error_type(verdict: Verdict) -> str:
    return "inconclusive" if verdict.status is Status.PENDING else str(verdict.status)


def _undo_cases(result: RunResult) -> Iterator[_Case]:
    for undo in result.undo:
        name = f"{on_node(undo.step, undo.node)} is undone"
        yield _Case("undo", name, 0.0, "" if undo.proven else "error", "undo pending", undo.because)


def _add_case(suite: ET.Element, case: _Case, experiment: str) -> None:
    classname = f"nodefall.{printable(experiment)}.{case.group}"
    attributes = {"name": printable(case.name), "classname": classname, "time": _seconds(case.seconds)}
    element = ET.SubElement(suite, "testcase", attributes)
    if case.outcome:
        error = {"type": case.type, "message": printable(case.message)}
        ET.SubElement(element, case.outcome, error).text = "\n".join(printable(line) for line in case.details)


def _system_out(result: RunResult) -> Iterator[str]:
    yield from (f"undo pending: {line}" for line in pending_undo(result))
    yield from (f"left behind: {line}" for line in leftovers(result))
    yield from (f"assumed: {line}" for line in assumed_facts(result))
    yield from (f"note: {line}" for line in notes(result))
    if result.simulated:
        yield SIMULATED


def _seconds(value: float) -> str:
    return f"{max(0.0, value):.3f}"


def _timestamp(t: float) -> str:
    """Format as xs:dateTime in UTC without a zone, as the schema requires."""
    day, _, clock = format_utc(t).removesuffix(" UTC").partition(" ")
    return f"{day}T{clock}" if clock else "1970-01-01T00:00:00"


RENDERER = Renderer("junit", "junit.xml", "test cases for a CI system", render)
