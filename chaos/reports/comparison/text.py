"""Comparisons as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.core.text import align_columns, printable
from chaos.reports.comparison.comparison import Comparison
from chaos.reports.comparison.phrases import (
    SIMULATED_SIDE,
    band_text,
    followers_text,
    headline,
    row_sentence,
    seconds_text,
    verdict_sentence,
    why_text,
)
from chaos.verdicts.outcome.acceptance import Standing

_SHOWN = 20  # rows of a list on a terminal; the reports have all


def comparison_text(comparisons: Sequence[Comparison]) -> list[str]:
    """Lines: of each comparison what surprises most, all that differs, then times of nodes and workloads."""
    lines = [line for comparison in comparisons for line in _lines(comparison)]
    if any(comparison.simulated for comparison in comparisons):
        lines.append(SIMULATED_SIDE)
    return lines


def _lines(comparison: Comparison) -> Iterator[str]:
    yield headline(comparison)
    yield f"  {printable(comparison.side.name)} beside {printable(comparison.expected.name)}: {counts(comparison)}"
    for changed in comparison.changed:
        yield f"  {verdict_sentence(changed)}"
    first = comparison.first
    for row in first[:_SHOWN]:
        yield f"  {row_sentence(row)}"
        yield f"    {why_text(comparison, row)}"
        if followers := followers_text(comparison, row):
            yield f"    {followers}"
    if len(first) > _SHOWN:
        yield f"  and {len(first) - _SHOWN} more: see the reports of --out"
    yield from (f"  note: {printable(note)}" for note in comparison.notes)
    table = [
        (
            "",
            str(row.measure),
            seconds_text(row.seconds),
            band_text(row),
            "" if _is_inside(row.standing) else row.standing,
        )
        for row in comparison.rows
        if row.measure.kind in ("node", "workload", "volume", "zone")
    ]
    if table:
        yield ""
        yield from align_columns([("", "MEASURE", "HAPPENED", "PREDICTED", ""), *table[: 2 * _SHOWN]])
        yield ""


def _is_inside(standing: Standing) -> bool:
    return standing is Standing.INSIDE


def counts(comparison: Comparison) -> str:
    """``84 inside, 2 later than predicted``."""
    found = [row.standing for row in comparison.rows]
    return ", ".join(f"{found.count(each)} {each}" for each in Standing if each in found) or "nothing happened"
