"""The victims, ranked, each with a bar of its points; and the worst of them in detail."""

from __future__ import annotations

from chaos.rehearsal.forecast.document import Rehearsal
from chaos.rehearsal.forecast.page.tables import risk_row
from chaos.rehearsal.forecast.ranking import EXPLANATION, VictimRank
from chaos.rehearsal.forecast.rows import VICTIM_HEAD, victim_cells
from chaos.reports.run.markup import Html, join, table, tag

_WIDTH = 200.0
_DETAILED = 10
_LEGEND = (
    ("part-gone", "workloads without a serving pod"),
    ("part-budget", "budgets overdrawn"),
    ("part-room", "pods without room"),
    ("part-other", "pods stuck, lost or waiting"),
)
_CLASSES = {"workload": "part-gone", "budget": "part-budget", "room": "part-room"}


def victims(rehearsal: Rehearsal) -> Html:
    """The table of all victims, and what is lost with the worst ones; "" without victims."""
    ranks = rehearsal.runs.victims
    if not ranks:
        return Html()
    top = max(rank.score for rank in ranks)
    numbers = [tag("th", cell, scope="col", class_="num") for cell in VICTIM_HEAD]
    head = tag("tr", tag("th", rehearsal.each.capitalize(), scope="col"), join(numbers))
    caption = tag("caption", f"Every {rehearsal.each} as the victim, the one that hurts most first")
    rows = [_row(rank, top) for rank in ranks]
    body = tag("table", caption, tag("thead", head), tag("tbody", join(rows, "\n")), class_="victims stacked")
    title = f"Which {rehearsal.each} hurts most"
    legend = tag(
        "ul", join(tag("li", tag("span", class_=f"key {key}"), text) for key, text in _LEGEND), class_="legend"
    )
    return join(
        (tag("section", tag("h2", title), legend, body, tag("p", EXPLANATION, class_="quiet")), _details(ranks)), "\n"
    )


def _row(rank: VictimRank, top: float) -> Html:
    where = [rank.zone and f"zone {rank.zone}", "" if len(rank.nodes) == 1 else f"{len(rank.nodes)} nodes"]
    name = (tag("strong", rank.victim), tag("span", ", ".join(filter(None, where)), class_="sub"), _bar(rank, top))
    cells = [
        tag("td", cell, class_="num", data_name=title)
        for title, cell in zip(VICTIM_HEAD, victim_cells(rank), strict=True)
    ]
    return tag("tr", tag("td", join(name)), join(cells), class_="hurts" if rank.score else "harmless")


def _bar(rank: VictimRank, top: float) -> Html:
    x, parts = 0.0, [tag("rect", x="0", y="0", width=f"{_WIDTH:g}", height="7", class_="bar-none")]
    for part in rank.parts:
        width = part.points / top * _WIDTH if top else 0.0
        kind = next((name for word, name in _CLASSES.items() if f" {word}" in part.text), "part-other")
        parts.append(tag("rect", x=f"{x:.1f}", y="0", width=f"{width:.1f}", height="7", class_=kind))
        x += width
    shape = f"0 0 {_WIDTH:g} 7"
    return tag("svg", join(parts), viewBox=shape, preserveAspectRatio="none", class_="bar", aria_hidden="true")


def _details(ranks: tuple[VictimRank, ...]) -> Html:
    """What is lost with each of the worst victims."""
    parts = []
    for index, rank in enumerate([rank for rank in ranks if rank.risks][:_DETAILED]):
        rows = [risk_row(risk) for risk in rank.risks]
        caption = f"What is lost with {rank.victim}"
        body = table(("What", "Of", "For", "Runs", "Detail"), rows, caption, class_="stacked risks")
        summary = tag("summary", tag("strong", rank.victim), f": {rank.why}")
        opened = {"open": "open"} if index == 0 else {}
        parts.append(tag("details", summary, body, **opened))
    return tag("section", tag("h2", "What is lost with them"), join(parts, "\n")) if parts else Html()
