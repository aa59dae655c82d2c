"""Comparisons as one offline page, without scripts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from chaos.reports.run.markup import Html, join, table, tag
from chaos.reports.run.offline_page import load_assets, page_head
from chaos.verdicts.outcome.acceptance import Row
from chaos.verdicts.outcome.measure import Kind

_MARK = "SIMULATED: at least one side of this comparison is not a real cluster"
_TITLES = {
    Kind.WORKLOAD: "Workloads",
    Kind.NODE: "Nodes",
    Kind.ZONE: "Zones",
    Kind.VOLUME: "Volumes",
    Kind.REPLACEMENT: "Replacements",
    Kind.POD: "Pods",
}
_HEAD = ("Measure", "Happened", "Predicted", "Accepted", "")


def comparison_page(comparisons: Sequence[Comparison]) -> str:
    """The whole document, ending in a newline."""
    styles = load_assets("palette.css", "report.css", "small.css", "print.css")
    style = Html("\n".join((styles, load_assets("compare.css", package="chaos.reports.comparison"))))
    simulated = any(each.simulated for each in comparisons)
    parts = [
        tag("p", _MARK, class_="simulated-mark") if simulated else Html(),
        tag("main", join((_comparison(each) for each in comparisons), "\n")),
        tag("footer", tag("p", SIMULATED_SIDE)) if simulated else Html(),
    ]
    title = ("SIMULATED: " if simulated else "") + "predicted and real: " + printable(comparisons[-1].side.name)
    page = tag("html", page_head(title, style), tag("body", join(parts, "\n")), lang="en")
    return f"<!doctype html>\n{page}\n"


def _comparison(comparison: Comparison) -> Html:
    side, expected = comparison.side, comparison.expected
    verdict, word = ("violated", "differs") if comparison.exit_code else ("held", "as predicted")
    about = f"{printable(side.name)} beside {printable(expected.name)}: {counts(comparison)}"
    header = tag(
        "header",
        tag("p", tag("span", word, class_=f"badge {verdict}")),
        tag("h1", headline(comparison)),
        tag("p", about, class_="quiet"),
    )
    sections = (
        _expectations(comparison),
        _surprises(comparison),
        *(_kind(comparison.rows, kind) for kind in _TITLES),
        _list("What may have moved times, and what was not predicted", comparison.notes),
    )
    return tag("article", header, join(sections, "\n"))


def _expectations(comparison: Comparison) -> Html:
    if not comparison.expectations:
        return Html()
    rows = []
    for row in comparison.expectations:
        seconds = seconds_text(row.seconds) if row.seconds is not None else ""
        differs = row in comparison.changed
        cells = (row.name, row.status, predicted_text(row), seconds, duration_text(row))
        rows.append(tag("tr", join(tag("td", cell) for cell in cells), class_="outside" if differs else "inside"))
    head = ("Expectation", "Verdict", "Predicted", "After", "Predicted after")
    return _section("Verdicts", table(head, rows, "Verdicts beside the predicted ones"))


def _surprises(comparison: Comparison) -> Html:
    if not comparison.outside:
        return Html()
    explained = ((*_cells(row), why_text(comparison, row)) for row in comparison.outside)
    cells = (tag("tr", join(tag("td", cell) for cell in each)) for each in explained)
    return _section("Outside of the prediction", table((*_HEAD, "Mechanism"), cells, "What left its band"))


def _kind(rows: Iterable[Row], kind: Kind) -> Html:
    found = [row for row in rows if row.measure.kind is kind]
    if not found:
        return Html()
    lines = (
        tag(
            "tr",
            join(tag("td", cell) for cell in _cells(row)),
            class_="outside" if row.standing.is_outside else "inside",
        )
        for row in found
    )
    title = _TITLES[kind]
    shown = tag("div", table(_HEAD, lines, f"{title}: what happened, and what was predicted"), class_="wide")
    return tag("section", tag("details", tag("summary", f"{title}: {len(found)} measures"), shown))


def _cells(row: Row) -> tuple[str, ...]:
    return str(row.measure), seconds_text(row.seconds), band_text(row), accepted_text(row), str(row.standing)


def _section(title: str, content: Html) -> Html:
    return tag("section", tag("h2", title), tag("div", content, class_="wide"))


def _list(title: str, lines: Iterable[str]) -> Html:
    found = [tag("li", line) for line in lines]
    return tag("section", tag("h2", title), tag("ul", join(found))) if found else Html()
