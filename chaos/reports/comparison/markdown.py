"""Comparisons as Markdown, for a pull request or a summary of CI. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.core.text import printable
from chaos.reports.comparison.comparison import Comparison
from chaos.reports.comparison.phrases import (
    SIMULATED_SIDE,
    accepted_text,
    band_text,
    duration_text,
    headline,
    predicted_text,
    seconds_text,
    why_text,
)
from chaos.reports.comparison.text import counts


def comparison_markdown(comparisons: Sequence[Comparison]) -> str:
    """The whole document, ending in a newline."""
    lines = [line for comparison in comparisons for line in _lines(comparison)]
    if any(comparison.simulated for comparison in comparisons):
        lines.append(f"**{SIMULATED_SIDE}**")
    return "\n".join(lines).rstrip("\n") + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    yield f"# {_cell(headline(comparison))}"
    yield ""
    yield f"{_cell(comparison.side.name)} beside {_cell(comparison.expected.name)}: {counts(comparison)}."
    yield ""
    if comparison.expectations:
        yield from _table("Expectation", "Verdict", "Predicted", "After", "Predicted after", "")
        for row in comparison.expectations:
            differs = "**differs**" if row in comparison.changed else ""
            seconds = seconds_text(row.seconds) if row.seconds is not None else ""
            yield _row(row.name, row.status, predicted_text(row), seconds, duration_text(row), differs)
        yield ""
    yield from _table("Measure", "Happened", "Predicted", "Accepted", "", "Mechanism")
    for measure in comparison.rows:
        standing = f"**{measure.standing}**" if measure.standing.is_outside else str(measure.standing)
        why = why_text(comparison, measure) if measure.standing.is_outside else ""
        cells = (str(measure.measure), seconds_text(measure.seconds), band_text(measure), accepted_text(measure))
        yield _row(*cells, standing, why)
    yield ""
    for note in comparison.notes:
        yield f"- {_cell(note)}"
    yield ""


def _table(*head: str) -> Iterator[str]:
    yield _row(*head)
    yield "|" + "---|" * len(head)


def _row(*cells: str) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;")
