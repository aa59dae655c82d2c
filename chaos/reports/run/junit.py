"""``junit.xml`` for CI systems, with a case for each step, verdict and undo.

A violated verdict is a failure. An inconclusive one must not look green, but is no failure of the cluster: an error of
type "inconclusive". A step without proof that it took effect and a pending undo are errors, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult
from chaos.core.text import on_node, printable
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.junit import Case, Suite, junit_document
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

_OUTCOMES = {Status.VIOLATED: "failure", Status.INCONCLUSIVE: "error", Status.PENDING: "error"}


def render(result: RunResult, timeline: Timeline) -> str:
    """The XML document, ending in a newline."""
    cases = (*_step_cases(result), *_verdict_cases(result, timeline), *_undo_cases(result))
    properties = [("Verdict", result.headline), *run_details(result)]
    took, begun = result.ended - result.started, _timestamp(result.started)
    return junit_document([Suite(name_of(result), begun, took, properties, cases, list(_system_out(result)))])


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
            texts = [*([row.because] if row.sentence else []), f"expected: {verdict.expected}"]
            texts += [f"observed: {row.observed}"] if row.observed else []
            outcome, message = _OUTCOMES.get(verdict.status, ""), row.sentence or row.because
            classname, kind = _classname(result, section.key), _error_type(verdict)
            yield Case(classname, verdict.name, took, outcome, kind, message, (*texts, *facts))


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
