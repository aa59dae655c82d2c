"""``report.md``: a report for pull requests, issues and terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.reports.run.outline import (
    SIMULATED,
    Evidence,
    assumed_facts,
    evidence,
    format_offset,
    name_of,
    origin,
    pending_undo,
    run_details,
    sections,
    unnoticed_text,
)
from chaos.reports.run.renderer import Renderer
from chaos.reports.run.steps import PHASES, STEPS, phases, step_rows
from chaos.reports.run.verdicts import VERDICTS, Row, leftovers, notes, ranked, rows
from chaos.reports.tables import (
    PAIRS,
    Column,
    escape,
    escape_line,
    markdown_details,
    markdown_document,
    markdown_section,
    markdown_table,
)


def render(result: RunResult, timeline: Timeline) -> str:
    """GitHub-flavoured Markdown that fits into a comment, ending in a newline."""
    return markdown_document(_blocks(result, timeline))


def _blocks(result: RunResult, timeline: Timeline) -> Iterator[list[str]]:
    """What a reader must know, and then the details, folded."""
    title, first = f"# {escape(name_of(result))}: {result.status}", f"**{escape(result.headline)}**"
    yield [title, "", first, "", escape_line(result.title)]
    if result.simulated:
        yield [SIMULATED]
    left = (*pending_undo(result), *leftovers(result))
    yield markdown_section("Left behind", _bullets(left, _nothing_left_behind(result)))
    found = rows(result)
    for section in sorted(sections(result), key=lambda each: _all_held(found[each.key])):
        yield markdown_section(section.title, markdown_table(VERDICTS, ranked(found[section.key])))
    if result.unnoticed:
        yield markdown_section("Unnoticed", _bullets([unnoticed_text(each) for each in result.unnoticed]))
    steps = markdown_table(STEPS, step_rows(result)) if result.steps else ["- none"]
    by_node = phases(result)
    yield markdown_details("Steps", [*steps, *(["", *markdown_table(PHASES, by_node)] if by_node else [])])
    if assumed := assumed_facts(result):
        yield markdown_details("Assumed", _bullets(assumed))
    if notes(result):
        yield markdown_details("Notes", _bullets(notes(result)))
    yield markdown_details("How it was run", markdown_table(PAIRS, run_details(result)))
    cited = evidence(result, timeline).values()
    yield markdown_details("Evidence", markdown_table(_evidence(origin(result)), cited) if cited else ["- none"])


def _all_held(found: Sequence[Row]) -> bool:
    """Whether no row needs to be read first."""
    return all(row.verdict.shown is Status.HELD for row in found)


def _evidence(start: float) -> tuple[Column[Evidence], ...]:
    return (
        Column("number", lambda cited: str(cited.seq)),
        Column("when", lambda cited: format_offset(cited.t, start)),
        Column("kind", lambda cited: cited.kind),
        Column("observation", lambda cited: cited.what),
    )


def _nothing_left_behind(result: RunResult) -> str:
    return "nothing" if result.run else "judged from a recording: nothing was changed"


def _bullets(items: Sequence[str], none: str = "") -> list[str]:
    return [f"- {escape_line(item)}" for item in items or (none,)]


RENDERER = Renderer("markdown", "report.md", "tables to paste into an issue", render)
