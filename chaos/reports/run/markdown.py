"""``report.md``: a report for pull requests, issues and terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chaos.core.result import RunResult
from chaos.core.text import printable
from chaos.core.timeline import Timeline
from chaos.core.verdict import SYMBOLS
from chaos.reports.run.outline import (
    PHASES,
    SIMULATED,
    STEP_SYMBOLS,
    assumed_facts,
    evidence,
    format_offset,
    name_of,
    origin,
    pending_undo,
    phases,
    run_details,
    sections,
    step_text,
)
from chaos.reports.run.renderer import Renderer
from chaos.reports.run.verdict_rows import Row, leftovers, notes, rows

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#@!$])")
_LINE_START = re.compile(r"^(\d+)([.)])|^([-+=])")
_AUTOLINK = re.compile(r"(?i)(?<=www)\.|:(?=//)")


def escape(text: str) -> str:
    """Escape ``text`` so that it has no markup, link, table cell or HTML."""
    escaped = _SPECIAL.sub(r"\\\1", printable(text).replace("&", "&amp;"))
    return _AUTOLINK.sub(lambda m: "\\" + m[0], escaped)


def escape_line(text: str) -> str:
    """Escape like :func:`escape`, and at the start of a line also list markers and heading underlines."""
    return _LINE_START.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", escape(text))


def render(result: RunResult, timeline: Timeline) -> str:
    """GitHub-flavoured Markdown, ending in a newline."""
    start = origin(result)
    blocks = [
        [
            f"# {escape(name_of(result))}: {result.status}",
            "",
            f"**{escape(result.headline)}**",
            "",
            escape_line(result.title),
        ],
        ["## Left behind", "", *_bullets((*pending_undo(result), *leftovers(result)), _nothing_left_behind(result))],
        ["## Steps", "", *_steps(result, start)],
    ]
    found = rows(result)
    blocks += [[f"## {s.title}", "", *_verdicts(found[s.key], start)] for s in sections(result)]
    blocks.append(["## Evidence", "", *_evidence(result, timeline, start)])
    blocks.append(
        ["## Assumed", "", *_bullets(assumed_facts(result), "nothing: every bound was read from the cluster")]
    )
    if notes(result):
        blocks.append(["## Notes", "", *_bullets(notes(result), "")])
    blocks.append(["## How it was run", "", *_table(("what", "value"), run_details(result))])
    if result.simulated:
        blocks.append([SIMULATED])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _nothing_left_behind(result: RunResult) -> str:
    return "nothing" if result.run else "judged from a recording: nothing was changed"


def _bullets(items: Sequence[str], none: str) -> list[str]:
    return [f"- {escape_line(item)}" for item in items or ((none,) if none else ())]


def _table(head: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *([escape(cell) for cell in row] for row in cells)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _steps(result: RunResult, start: float) -> list[str]:
    cells = [
        (
            f"{STEP_SYMBOLS[s.proof_status]} {s.step}",
            s.action,
            s.node,
            format_offset(s.begin, start),
            s.command,
            step_text(s),
        )
        for s in result.steps
    ]
    table = _table(("step", "action", "node", "began", "sent", "effect"), cells) if cells else ["- none"]
    rows_by_phase = phases(result, start)
    return [*table, "", *_table(PHASES, rows_by_phase)] if rows_by_phase else table


def _verdicts(found: tuple[Row, ...], start: float) -> list[str]:
    head = ("verdict", "expectation", "in short", "because", "expected", "decided", "deadline", "evidence")
    return _table(
        head,
        (
            (
                f"{SYMBOLS[row.verdict.status]} {row.verdict.status}",
                row.verdict.name,
                row.sentence,
                "; observed: ".join(text for text in (row.because, row.observed) if text),
                row.verdict.expected,
                format_offset(row.verdict.at, start),
                format_offset(row.verdict.deadline, start),
                ", ".join(map(str, row.verdict.evidence)),
            )
            for row in found
        ),
    )


def _evidence(result: RunResult, timeline: Timeline, start: float) -> list[str]:
    cells = [(str(e.seq), format_offset(e.t, start), e.kind, e.what) for e in evidence(result, timeline).values()]
    return _table(("number", "when", "kind", "observation"), cells) if cells else ["- none"]


RENDERER = Renderer("markdown", "report.md", "tables to paste into an issue", render)
