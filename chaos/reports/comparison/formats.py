"""Comparisons as text, Markdown, one offline page without scripts, and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chaos.core.text import printable
from chaos.reports.comparison.comparison import Comparison, ExpectationRow
from chaos.reports.comparison.phrases import (
    SIMULATED_SIDE,
    accepted_text,
    band_text,
    counts,
    duration_text,
    followers_text,
    headline,
    predicted_text,
    row_sentence,
    seconds_text,
    verdict_sentence,
    why_text,
)
from chaos.reports.markup import render_page
from chaos.reports.tables import Column, Rich, View, escape, markdown_document, markdown_table, page_table, text_table
from chaos.verdicts.outcome.acceptance import Row, Standing
from chaos.verdicts.outcome.measure import Kind

_SHOWN = 20  # rows of a list on a terminal; the reports have all
_TITLES = {
    Kind.WORKLOAD: "Workloads",
    Kind.NODE: "Nodes",
    Kind.ZONE: "Zones",
    Kind.VOLUME: "Volumes",
    Kind.REPLACEMENT: "Replacements",
    Kind.POD: "Pods",
}
_PAGE = ("base.css", "paper.css", "compare.css")


def _measures(comparison: Comparison, views: View = View.ANY) -> tuple[Column[Row], ...]:
    """The columns of measures; ``views``: where the mechanism is shown, of those that left their bands."""

    def why(row: Row) -> str:
        return why_text(comparison, row) if row.standing.is_outside else ""

    return (
        Column("", lambda _: "", views=View.TEXT),
        Column("Measure", lambda row: str(row.measure)),
        Column("Happened", lambda row: seconds_text(row.seconds)),
        Column("Predicted", band_text),
        Column("Accepted", accepted_text, views=View.MARKDOWN | View.HTML),
        Column("", lambda row: "" if row.standing is Standing.INSIDE else row.standing, views=View.TEXT),
        Column("", lambda row: Rich(row.standing, is_bold=row.standing.is_outside), views=View.MARKDOWN),
        Column("Standing", lambda row: str(row.standing), views=View.HTML),
        Column("Mechanism", why, views=views & ~View.TEXT),
    )


def _expectations(comparison: Comparison) -> tuple[Column[ExpectationRow], ...]:
    return (
        Column("Expectation", lambda row: row.name),
        Column("Verdict", lambda row: row.status),
        Column("Predicted", predicted_text),
        Column("After", lambda row: seconds_text(row.seconds) if row.seconds is not None else ""),
        Column("Predicted after", duration_text),
        Column("", lambda row: Rich("differs", is_bold=True) if row in comparison.changed else "", views=View.MARKDOWN),
    )


def comparison_text(comparisons: Sequence[Comparison]) -> list[str]:
    """Lines: of each comparison what surprises most, all that differs, then times of nodes and workloads."""
    lines = [line for comparison in comparisons for line in _text_lines(comparison)]
    if any(comparison.simulated for comparison in comparisons):
        lines.append(SIMULATED_SIDE)
    return lines


def _text_lines(comparison: Comparison) -> Iterator[str]:
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
    table = [row for row in comparison.rows if row.measure.kind in ("node", "workload", "volume", "zone")]
    if table:
        yield from ("", *text_table(_measures(comparison), table[: 2 * _SHOWN]), "")


def comparison_markdown(comparisons: Sequence[Comparison]) -> str:
    """The whole document for a pull request or a summary of CI, ending in a newline."""
    simulated = any(comparison.simulated for comparison in comparisons)
    blocks = [block for comparison in comparisons for block in _markdown_blocks(comparison)]
    return markdown_document([*blocks, [f"**{SIMULATED_SIDE}**"] if simulated else []])


def _markdown_blocks(comparison: Comparison) -> Iterator[list[str]]:
    about = f"{escape(comparison.side.name)} beside {escape(comparison.expected.name)}"
    yield [f"# {escape(headline(comparison))}", "", f"{about}: {counts(comparison)}."]
    if comparison.expectations:
        yield markdown_table(_expectations(comparison), comparison.expectations, "|---")
    yield markdown_table(_measures(comparison), comparison.rows, "|---")
    yield [f"- {escape(note)}" for note in comparison.notes]


def comparison_page(comparisons: Sequence[Comparison]) -> str:
    """The whole document, ending in a newline."""
    simulated = any(each.simulated for each in comparisons)
    title = ("SIMULATED: " if simulated else "") + "predicted and real: " + printable(comparisons[-1].side.name)
    mark, found = SIMULATED_SIDE if simulated else "", [_on_page(each) for each in comparisons]
    return render_page("comparison.html", _PAGE, title=title, simulated=mark, comparisons=found)


def _on_page(comparison: Comparison) -> dict[str, Any]:
    side, expected, plain = comparison.side, comparison.expected, _measures(comparison, View.MARKDOWN)
    verdict, word = ("violated", "differs") if comparison.exit_code else ("held", "as predicted")
    by_kind = {kind: [row for row in comparison.rows if row.measure.kind is kind] for kind in _TITLES}
    return {
        "verdict": verdict,
        "word": word,
        "headline": headline(comparison),
        "about": f"{printable(side.name)} beside {printable(expected.name)}: {counts(comparison)}",
        "expectations": page_table(
            _expectations(comparison),
            comparison.expectations,
            "Verdicts compared with the prediction",
            attributes=lambda row: _outside(row in comparison.changed),
        ),
        "surprises": page_table(_measures(comparison), comparison.outside, "What left its band"),
        "kinds": [
            (
                title,
                page_table(
                    plain,
                    by_kind[kind],
                    f"{title}: what happened, and what was predicted",
                    attributes=lambda row: _outside(row.standing.is_outside),
                ),
            )
            for kind, title in _TITLES.items()
        ],
        "notes": comparison.notes,
    }


def _outside(is_outside: bool) -> dict[str, str]:
    return {"class": "outside" if is_outside else "inside"}
