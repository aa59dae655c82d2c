"""The page below the timeline: verdicts, steps, evidence and circumstances, readable without scripts and on paper."""

from __future__ import annotations

from collections.abc import Collection

from chaos.core.duration import format_duration
from chaos.core.result import RunResult, StepResult
from chaos.core.timeline import Entry, Timeline
from chaos.core.verdict import SYMBOLS, Verdict
from chaos.reports.run.describe import describe
from chaos.reports.run.markup import SPACE, Html, join, table, tag, text
from chaos.reports.run.outline import (
    PHASES,
    STEP_SYMBOLS,
    assumed_facts,
    cited_seqs,
    format_offset,
    origin,
    phases,
    run_details,
)
from chaos.reports.run.page.ranking import Ranked, cited_first, ranked, unproven_step
from chaos.reports.run.verdict_rows import Row, notes, rows

_MAX_LINKS = 12  # links to evidence in a row


def render_tables(result: RunResult, timeline: Timeline) -> Html:
    """Render all sections."""
    entries = {entry.seq: entry for entry in timeline.entries.select(cited_seqs(result))}
    times = {seq: entry.t for seq, entry in entries.items()}
    shown: set[int] = set()
    parts = (
        _verdicts(result, times, shown),
        _steps(result, shown),
        _evidence(result, [entries[seq] for seq in sorted(shown & entries.keys())]),
        observations_section(),
        _run_details(result),
    )
    return join(parts, "\n")


def _verdicts(result: RunResult, times: dict[int, float], shown: set[int]) -> Html:
    start = origin(result)
    views = {f"{part}-{i}": view for part, found in rows(result).items() for i, view in enumerate(found)}
    lines = [_verdict_row(row, views[row.key], start, times, shown) for row in ranked(result)]
    head = ("Verdict", "Expectation", "Reason", "Evidence")
    whole = table(head, lines, "Every expectation with its verdict, reason and evidence", class_="verdicts stacked")
    return tag("section", tag("h2", "Verdicts", id="verdicts-title"), whole, aria_labelledby="verdicts-title")


def _verdict_row(row: Ranked, view: Row, start: float, times: dict[int, float], shown: set[int]) -> Html:
    verdict = row.verdict
    badge = tag("span", f"{SYMBOLS[verdict.status]} {verdict.status}", class_=f"badge {verdict.status}")
    where = tag("span", f"{row.part}, {verdict.assertion}", class_="sub")
    return tag(
        "tr",
        tag("td", badge, _decision_time(verdict, start)),
        tag("td", tag("strong", verdict.name), where),
        tag("td", tag("p", view.sentence) if view.sentence else "", view.because, _expected_and_observed(view)),
        tag("td", _evidence_links(verdict.evidence, cited_first(verdict, times, _MAX_LINKS), shown), class_="links"),
        id=row.key,
        data_verdict=row.key,
        tabindex="-1",
    )


def _decision_time(verdict: Verdict, start: float) -> Html:
    """Time of the decision, and the deadline."""
    decided = f"at {format_offset(verdict.at, start)}" if verdict.at is not None else ""
    due = f"due {format_offset(verdict.deadline, start)}" if verdict.deadline is not None else ""
    return tag("span", ", ".join(part for part in (decided, due) if part), class_="sub")


def _expected_and_observed(view: Row) -> Html:
    """Expected and observed side by side, where the verdict has them."""
    pairs = (("expected", view.verdict.expected), ("observed", view.observed))
    items = [join((tag("dt", name), tag("dd", value))) for name, value in pairs if value]
    return tag("dl", join(items)) if items else Html()


def _evidence_links(evidence: Collection[int], chosen: tuple[int, ...], shown: set[int]) -> Html:
    """Links to ``chosen``, which are added to ``shown``: each of them needs a row in the list of evidence."""
    shown.update(chosen)
    links = [tag("a", f"#{seq}", href=f"#e{seq}") for seq in chosen]
    more = [f"and {len(evidence) - len(chosen)} more"] if len(evidence) > len(chosen) else []
    return join((*links, *more), " ") if evidence else text("none")


def _steps(result: RunResult, shown: set[int]) -> Html:
    start = origin(result)
    first = unproven_step(result)  # the top of the page has its reason
    lines = [_step_row(step, "see above" if step is first else step.because, start, shown) for step in result.steps]
    title = tag("h2", "Steps", id="steps-title")
    if not lines:
        return tag("section", title, tag("p", "No step was sent."), aria_labelledby="steps-title")
    body = table(("Step", "Node", "Sent", "Effect", "Evidence"), lines, "Steps and their proofs", class_="stacked")
    found = [tag("tr", join(tag("td", cell) for cell in row)) for row in phases(result, start)]
    head = tuple(name.capitalize() for name in PHASES)
    by_node = tag("div", table(head, found, "Phases of each step by node"), class_="wide") if found else Html()
    return tag("section", title, body, by_node, aria_labelledby="steps-title")


def _step_row(step: StepResult, because: str, start: float, shown: set[int]) -> Html:
    took = f", took {format_duration(step.returned - step.begin)}" if step.begin and step.returned else ""
    sent = tag("code", step.command) if step.command else Html()
    effect = f"{STEP_SYMBOLS[step.proof_status]} {step.proof_status}{' (weakly)' if step.weak else ''}"
    badge = tag("span", effect, class_=f"badge {step.proof_status.replace(' ', '-')}")
    sub = tag("span", f"{step.action} at {format_offset(step.begin, start)}", class_="sub")
    return tag(
        "tr",
        tag("td", tag("strong", step.step), sub),
        tag("td", step.node),
        tag("td", sent, tag("span", f"{step.delivery}{took}", class_="sub")),
        tag("td", badge, SPACE, because),
        tag("td", _evidence_links(step.evidence, step.evidence[:_MAX_LINKS], shown), class_="links"),
    )


def _evidence(result: RunResult, entries: list[Entry]) -> Html:
    """The cited entries as footnotes; their differences are in the panel of the timeline."""
    start = origin(result)
    items = [
        tag(
            "li",
            tag("span", f"#{entry.seq}", class_="number"),
            tag("span", format_offset(entry.t, start), class_="time"),
            tag("span", f"{entry.kind}:", SPACE, describe(entry)),
            id=f"e{entry.seq}",
            tabindex="-1",
        )
        for entry in entries
    ]
    if not items:
        return Html()
    title = tag("h2", "Evidence", id="evidence-title")
    return tag("section", title, tag("ol", join(items, "\n"), class_="footnotes"), aria_labelledby="evidence-title")


def observations_section() -> Html:
    """All observed changes: the script lists them when the section is opened."""
    summary = tag("summary", tag("h2", "Observations"), SPACE, tag("span", id="observed", class_="quiet"))
    return tag("details", summary, tag("div", id="observations-list"), id="observations", class_="scripted")


def _run_details(result: RunResult) -> Html:
    assumed = assumed_facts(result)
    lists = [
        ("Assumed", assumed or ("Nothing: every bound was read from the cluster.",)),
        ("Notes", notes(result)),
    ]
    parts = [
        tag("div", tag("h2", title), tag("ul", join(tag("li", line) for line in lines)))
        for title, lines in lists
        if lines
    ]
    details = [("Experiment", result.title), *run_details(result)]
    facts = join(join((tag("dt", name), tag("dd", value))) for name, value in details)
    return tag("section", tag("div", tag("h2", "How it was run"), tag("dl", facts)), join(parts), class_="about")
