"""A rehearsal for pull requests and issues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chaos.rehearsal.forecast.document import Rehearsal
from chaos.rehearsal.forecast.ranking import EXPLANATION
from chaos.rehearsal.forecast.rows import (
    VICTIM_HEAD,
    how_often,
    side_by_side,
    source_text,
    times,
    verdicts,
    victim_cells,
)
from chaos.reports.run.markdown import escape, escape_line
from chaos.reports.run.outline import SIMULATED


def rehearsal_markdown(rehearsal: Rehearsal) -> str:
    """GitHub-flavoured Markdown, ending in a newline."""
    runs = rehearsal.runs
    blocks = [
        [f"# Rehearsal of {escape(rehearsal.experiment)}", "", f"**{escape(rehearsal.headline)}**", "", SIMULATED],
        [escape_line(f"{rehearsal.title}: {how_often(rehearsal)}, on {source_text(rehearsal)}.")],
        _bullets("What if", runs.changes),
        _table("Side by side", ("", "Without", "With"), side_by_side(rehearsal)),
        _table(
            f"Every {rehearsal.each}",
            ("Victim", "Zone", *VICTIM_HEAD, "Why"),
            [(rank.victim, rank.zone, *victim_cells(rank), rank.why) for rank in runs.victims],
        ),
        [escape_line(EXPLANATION)] if runs.victims else [],
        _table(
            "Expectations",
            ("Expectation", "Verdicts", "p5 .. p50 .. p95"),
            [(each.name, verdicts(each), times(each)) for each in runs.expectations],
        ),
        _table(
            "What is lost",
            ("What", "Of", "Pods", "For", "Runs", "Detail"),
            [(r.title, r.subject, str(r.count), r.length, f"{r.runs} of {r.of}", r.detail) for r in runs.risks],
        ),
        _bullets("Refused", (f"{count} of {runs.count} runs: {text}" for text, count in runs.refused.items())),
        _bullets("Not in the answer", rehearsal.limits),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _bullets(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"- {escape(line)}" for line in lines]
    return [f"## {title}", "", *found] if found else []


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = [f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows]
    return [f"## {title}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]
