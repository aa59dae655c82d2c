"""A rehearsal as one offline page, without scripts."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.core.text import printable
from chaos.rehearsal.forecast.document import Rehearsal, Runs
from chaos.rehearsal.forecast.page.header import render_header
from chaos.rehearsal.forecast.page.tables import expectations, measures, risks, sides
from chaos.rehearsal.forecast.page.victims import victims
from chaos.reports.run.markup import Html, join, tag
from chaos.reports.run.offline_page import load_assets, page_head
from chaos.reports.run.outline import SIMULATED

_MARK = "SIMULATED: a rehearsal on a copy, not your cluster"


def rehearsal_page(rehearsal: Rehearsal) -> str:
    """The whole document, ending in a newline."""
    style = Html("\n".join((load_assets("palette.css", "report.css", "small.css", "print.css"), _own_style())))
    runs = rehearsal.runs
    sections = (
        sides(rehearsal),
        victims(rehearsal),
        expectations(runs),
        risks(runs) if not runs.victims else Html(),
        _refused(runs),
        _list("Not in the answer", rehearsal.limits),
        measures(runs),
    )
    parts = (
        tag("p", _MARK, class_="simulated-mark"),
        render_header(rehearsal),
        tag("main", join(sections, "\n")),
        tag("footer", tag("p", SIMULATED)),
    )
    title = f"SIMULATED: {printable(rehearsal.experiment)}, rehearsed"
    page = tag("html", page_head(title, style), tag("body", join(parts, "\n")), lang="en")
    return f"<!doctype html>\n{page}\n"


def _own_style() -> Html:
    return load_assets("forecast.css", package="chaos.rehearsal.forecast")


def _refused(runs: Runs) -> Html:
    return _list("Refused", (f"{count} of {runs.count} runs: {reason}" for reason, count in runs.refused.items()))


def _list(title: str, lines: Iterable[str]) -> Html:
    found = [tag("li", line) for line in lines]
    return tag("section", tag("h2", title), tag("ul", join(found))) if found else Html()
