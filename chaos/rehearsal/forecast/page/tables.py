"""Tables of the page: expectations with their times, what is lost, with and without changes, all measures."""

from __future__ import annotations

from chaos.core.verdict import SYMBOLS, Status
from chaos.rehearsal.forecast.document import Rehearsal, Runs
from chaos.rehearsal.forecast.rows import STATUSES, format_seconds, side_by_side, times
from chaos.rehearsal.forecast.summary import Risk
from chaos.reports.run.markup import SPACE, Html, join, table, tag
from chaos.verdicts.outcome.prediction import ExpectationBand

_WIDTH = 200.0  # of a range, in units of its view box


def expectations(runs: Runs) -> Html:
    """Verdicts of each expectation, and the range of its durations on one axis."""
    if not runs.expectations:
        return Html()
    top = max((each.high for each in runs.expectations if each.high), default=0.0)
    rows = [_expectation(each, top) for each in runs.expectations]
    body = table(("Expectation", "Verdicts", "Time"), rows, "Verdicts and times over all runs", class_="stacked")
    note = "Time: 5 %, half and 95 % of the runs; the pale bar is the whole range."
    return tag("section", tag("h2", "Expectations"), body, tag("p", note, class_="quiet"))


def _expectation(band: ExpectationBand, top: float) -> Html:
    badges = [
        tag("span", f"{SYMBOLS[Status(status)]} {band.verdicts[status]} {status}", class_=f"badge {status}")
        for status in STATUSES
        if band.verdicts.get(status)
    ]
    where = tag("span", f"{band.section} {band.operator}".strip(), class_="sub")
    return tag(
        "tr",
        tag("td", tag("strong", band.name), where),
        tag("td", join(badges, SPACE)),
        tag("td", times(band) or "not measured", _range(band, top)),
    )


def _range(band: ExpectationBand, top: float) -> Html:
    if band.low is None or band.high is None or band.p5 is None or band.p95 is None or band.p50 is None or not top:
        return Html()
    parts = (
        _rect("range-track", 0, top, top, 5, 4),
        _rect("range-whole", band.low, band.high, top, 3, 8),
        _rect("range-most", band.p5, band.p95, top, 3, 8),
        _rect("range-median", band.p50, band.p50, top, 0, 14),
    )
    shape = f"0 0 {_WIDTH:g} 14"
    return tag("svg", join(parts), viewBox=shape, preserveAspectRatio="none", class_="range", aria_hidden="true")


def _rect(kind: str, begin: float, end: float, top: float, y: float, height: float) -> Html:
    scale = (_WIDTH - 2) / top
    width = max((end - begin) * scale, 1.5)
    return tag("rect", x=f"{begin * scale:.1f}", y=f"{y:g}", width=f"{width:.1f}", height=f"{height:g}", class_=kind)


def risks(runs: Runs) -> Html:
    """What is lost, the most important first."""
    title = tag("h2", "What is lost")
    if not runs.risks:
        text = "Nothing: every workload kept a serving pod, every pod found room, and no budget was overdrawn."
        return tag("section", title, tag("p", text)) if "refused" not in runs.endings else Html()
    rows = [risk_row(risk) for risk in runs.risks]
    body = table(("What", "Of", "For", "Runs", "Detail"), rows, "What is lost, by kind", class_="stacked risks")
    return tag("section", title, body)


def risk_row(risk: Risk) -> Html:
    """One row of the table of risks."""
    pods = f"{risk.count} pod" + ("s" if risk.count != 1 else "")
    return tag(
        "tr",
        tag("td", tag("strong", risk.title), tag("span", pods, class_="sub")),
        tag("td", risk.subject),
        tag("td", risk.length, data_name="For"),
        tag("td", f"{risk.runs} of {risk.of}", data_name="Runs"),
        tag("td", risk.detail),
    )


def sides(rehearsal: Rehearsal) -> Html:
    """Without and with the changes."""
    found = side_by_side(rehearsal)
    if not found:
        return Html()
    rows = [
        tag(
            "tr",
            tag("td", name),
            tag("td", before, data_name="Without"),
            tag("td", after, data_name="With", **({"class_": "differs"} if before != after else {})),
        )
        for name, before, after in found
    ]
    body = table(("", "Without", "With"), rows, "The same runs without and with the changes", class_="stacked sides")
    return tag("section", tag("h2", "Side by side"), body)


def measures(runs: Runs) -> Html:
    """All times after the fault, as nodefall compare uses them."""
    if not runs.measures:
        return Html()
    rows = [
        tag(
            "tr",
            tag("td", str(band.measure)),
            tag("td", f"{band.happened} of {band.outcomes}"),
            *(tag("td", format_seconds(each)) for each in (band.low, band.p5, band.p50, band.p95, band.high)),
        )
        for band in runs.measures
    ]
    head = ("Measure", "Runs", "Least", "5 %", "Half", "95 %", "Most")
    whole = tag("div", table(head, rows, "All times after the fault"), class_="wide")
    return tag("details", tag("summary", tag("h2", f"All {len(rows)} times after the fault")), whole)
