"""A trend as one offline page: a chart for each expectation, its change points, and all values as a table."""

from __future__ import annotations

from chaos.core.text import printable
from chaos.core.verdict import SYMBOLS, Status
from chaos.reports.history.trend import ExpectationTrend, Trend
from chaos.reports.history.trend_chart import trend_chart
from chaos.reports.history.trend_text import change_text, heading, left_out_text, operator_text, point_text, spread_text
from chaos.reports.run.markup import SPACE, Html, join, table, tag
from chaos.reports.run.offline_page import load_assets, page_head
from chaos.reports.run.outline import SIMULATED, format_utc

_TITLES = {"hypothesis": "Hypothesis", "recovery": "Recovery", "abort": "Abort conditions"}
_METHOD = (
    "Points are runs, from the oldest to the newest; the line is the median, the band the middle half of the values, "
    "the dashed line the bound. A duration that exceeded its bound is drawn at it; a ring is an inconclusive verdict. "
    "Change points are those of Pettitt's test (p at most 0.05) whose medians differ by 10 % and 0.1 s or more."
)


def trend_page(trend: Trend) -> str:
    """The whole document, ending in a newline."""
    style = load_assets("palette.css", "report.css", "trend.css")
    title = f"{printable(trend.experiment)}: trend over {len(trend.runs)} runs"
    badge = tag("p", tag("span", "simulated cluster", class_="badge lab")) if trend.group.simulated else Html()
    header = tag("header", badge, tag("h1", title), tag("p", heading(trend), class_="quiet"))
    sections = [_section(trend, key, title) for key, title in _TITLES.items()]
    left_out = [tag("p", line, class_="quiet") for line in left_out_text(trend)]
    main = tag("main", join(sections), tag("section", tag("p", _METHOD, class_="quiet"), join(left_out)))
    footer = tag("footer", tag("p", SIMULATED)) if trend.group.simulated else Html()
    page = tag("html", page_head(title, style), tag("body", join((header, main, footer), "\n")), lang="en")
    return f"<!doctype html>\n{page}\n"


def _section(trend: Trend, key: str, title: str) -> Html:
    found = [each for each in trend.expectations if each.section == key]
    return tag("section", tag("h2", title), join(_expectation(trend, each) for each in found)) if found else Html()


def _expectation(trend: Trend, each: ExpectationTrend) -> Html:
    median, quartiles = spread_text(each)
    measured = f"{operator_text(each)}: median {median}" + (f", half of them {quartiles}" if quartiles else "")
    changes = [tag("li", change_text(trend, each, change)) for change in each.changes]
    return tag(
        "article",
        tag("h3", each.name),
        tag("p", _counts(each), tag("span", measured if median else "nothing measured", class_="sub")),
        tag("div", trend_chart(trend, each), class_="wide"),
        tag("ul", join(changes), class_="changes") if changes else Html(),
        _values(trend, each),
    )


def _counts(each: ExpectationTrend) -> Html:
    shown = [status for status in (Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE) if each.counts.get(status)]
    badges = (tag("span", f"{SYMBOLS[s]} {each.counts[s]} {s}", class_=f"badge {s}") for s in shown)
    return join(badges, SPACE)


def _values(trend: Trend, each: ExpectationTrend) -> Html:
    """Every verdict: what a chart shows to those who see it."""
    rows = []
    for point in reversed(each.points):
        run = trend.runs[point.run]
        cells = (format_utc(run.started or 0.0), run.run or run.name, point_text(trend, point, with_run=False))
        rows.append(tag("tr", join(tag("td", cell) for cell in cells)))
    head = ("Started", "Run", "Verdict")
    caption = f"Every verdict on: {each.name}"
    whole = tag("div", table(head, rows, caption), class_="wide")
    return tag("details", tag("summary", f"{len(each.points)} verdicts"), whole)
