"""The tables of a rehearsal: their columns, and cells in words; with the bars that a page draws beside them."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.core.duration import format_duration
from chaos.core.text import count_of
from chaos.core.verdict import SYMBOLS, Status
from chaos.rehearsal.forecast.document import Rehearsal, Runs
from chaos.rehearsal.forecast.ranking import Risk, VictimRank
from chaos.reports.markup import Html, join, tag
from chaos.reports.tables import Column, Rich, View, badge
from chaos.verdicts.outcome.prediction import Band, ExpectationBand

_STATUSES = (Status.HELD, Status.KNOWN, Status.VIOLATED, Status.INCONCLUSIVE)
_WIDTH = 200.0  # of a bar or range, in units of its view box
_CLASSES = {"workload": "part-gone", "budget": "part-budget", "room": "part-room"}
_WORDS = View.TEXT | View.MARKDOWN

SIDES: tuple[Column[tuple[str, str, str]], ...] = (
    Column("what", lambda row: row[0]),
    Column("Without", lambda row: row[1], is_named=True),
    Column("With", lambda row: Rich(row[2], css="" if row[1] == row[2] else "differs"), is_named=True),
)
RISKS: tuple[Column[Risk], ...] = (
    Column("What", lambda risk: risk.title, "strong"),
    Column("pods", lambda risk: count_of(risk.count, "pod"), "sub", "What", View.HTML),
    Column("Of", lambda risk: risk.subject),
    Column("Pods", lambda risk: str(risk.count), views=View.MARKDOWN),
    Column("For", lambda risk: risk.length, is_named=True),
    Column("Runs", lambda risk: f"{risk.runs} of {risk.of}", is_named=True),
    Column("Detail", lambda risk: risk.detail),
)
MEASURES: tuple[Column[Band], ...] = (
    Column("Measure", lambda band: str(band.measure)),
    Column("Runs", lambda band: f"{band.happened} of {band.outcomes}"),
    Column("Least", lambda band: format_seconds(band.low)),
    Column("5 %", lambda band: format_seconds(band.p5)),
    Column("Half", lambda band: format_seconds(band.p50)),
    Column("95 %", lambda band: format_seconds(band.p95)),
    Column("Most", lambda band: format_seconds(band.high)),
)


def expectations(top: float = 0.0) -> tuple[Column[ExpectationBand], ...]:
    """The columns of expectations. ``top``: end of the axis of all durations, in seconds."""
    return (
        Column("Expectation", lambda band: band.name, "strong"),
        Column("where", lambda band: f"{band.section} {band.operator}", "sub", "Expectation", View.HTML),
        Column("Verdicts", _badges, "badges"),
        Column("p5 .. p50 .. p95", times, views=_WORDS),
        Column("Time", lambda band: times(band) or "not measured", views=View.HTML),
        Column("range", lambda band: _range(band, top), "text", "Time", View.HTML),
    )


def victim_columns(each: str, top: float = 0.0) -> tuple[Column[VictimRank], ...]:
    """The columns of victims; numbers that are zero are left out. ``top``: the most points."""
    name = each.capitalize()
    return (
        Column("Victim", lambda rank: rank.victim, views=_WORDS),
        Column("Zone", lambda rank: rank.zone, views=_WORDS),
        Column("victim", lambda rank: rank.victim, "strong", "", View.HTML, name),
        Column("where", _where, "sub", name, View.HTML),
        Column("bar", lambda rank: _bar(rank, top), "text", name, View.HTML),
        Column("Points", lambda rank: f"{rank.score:g}", "num", is_named=True),
        Column("Unavailable", lambda rank: _duration(rank.unavailable), "num", is_named=True),
        Column("Workloads gone", lambda rank: str(rank.workloads or ""), "num", is_named=True),
        Column("Budgets overdrawn", lambda rank: str(rank.budgets or ""), "num", is_named=True),
        Column("No room", lambda rank: str(rank.no_room or ""), "num", is_named=True),
        Column("Stuck", lambda rank: str(rank.stuck or ""), "num", is_named=True),
        Column("Experiment", _ending, "num", is_named=True),
        Column("Why", lambda rank: rank.why, views=View.MARKDOWN),
    )


def _where(rank: VictimRank) -> str:
    parts = (rank.zone and f"zone {rank.zone}", "" if len(rank.nodes) == 1 else f"{len(rank.nodes)} nodes")
    return ", ".join(filter(None, parts))


def _duration(seconds: float) -> str:
    return format_duration(round(seconds)) if seconds else ""


def _ending(rank: VictimRank) -> str:
    return ", ".join(name if len(rank.endings) == 1 else f"{n} {name}" for name, n in rank.endings.items())


def _bar(rank: VictimRank, top: float) -> Html:
    """The points of a victim by kind."""
    x, parts = 0.0, [tag("rect", x="0", y="0", width=f"{_WIDTH:g}", height="7", class_="bar-none")]
    for part in rank.parts:
        width = part.points / top * _WIDTH if top else 0.0
        kind = next((name for word, name in _CLASSES.items() if f" {word}" in part.text), "part-other")
        parts.append(tag("rect", x=f"{x:.1f}", y="0", width=f"{width:.1f}", height="7", class_=kind))
        x += width
    return _drawing(parts, 7, "bar")


def _range(band: ExpectationBand, top: float) -> Html:
    """The durations of an expectation: all of them, 5 to 95 % and the median, on one axis."""
    if band.low is None or band.high is None or band.p5 is None or band.p95 is None or band.p50 is None or not top:
        return Html()
    parts = (
        _rect("range-track", 0, top, top, 5, 4),
        _rect("range-whole", band.low, band.high, top, 3, 8),
        _rect("range-most", band.p5, band.p95, top, 3, 8),
        _rect("range-median", band.p50, band.p50, top, 0, 14),
    )
    return _drawing(parts, 14, "range")


def _drawing(parts: Sequence[Html], height: int, css: str) -> Html:
    shape = f"0 0 {_WIDTH:g} {height}"
    return tag(
        "svg",
        join(parts),
        viewBox=shape,
        width="100%",
        height=str(height),
        preserveAspectRatio="none",
        class_=css,
        aria_hidden="true",
    )


def _rect(kind: str, begin: float, end: float, top: float, y: float, height: float) -> Html:
    scale = (_WIDTH - 2) / top
    width = max((end - begin) * scale, 1.5)
    return tag("rect", x=f"{begin * scale:.1f}", y=f"{y:g}", width=f"{width:.1f}", height=f"{height:g}", class_=kind)


def _badges(band: ExpectationBand) -> Rich:
    """``18 held, 2 violated``."""
    found = [(status, count) for status in _STATUSES if (count := band.verdicts.get(status))]
    badges = [badge(f"{SYMBOLS[status]} {count} {status.words}", status) for status, count in found]
    return Rich(", ".join(f"{count} {status.words}" for status, count in found), parts=badges)


def times(band: ExpectationBand) -> str:
    """``p5 .. p50 .. p95`` of the measured durations, "" without any."""
    if band.p5 is None or band.p50 is None or band.p95 is None:
        return ""
    found = [format_seconds(each) for each in (band.p5, band.p50, band.p95)]
    return found[1] if found[0] == found[2] else f"{found[0]} .. {found[1]} .. {found[2]}"


def format_seconds(seconds: float) -> str:
    """With a tenth below a minute."""
    return format_duration(round(seconds, 1) if seconds < 60 else round(seconds))


def endings(runs: Runs) -> str:
    """``18 held, 2 violated``, of whole runs."""
    return ", ".join(f"{count} {ending}" for ending, count in sorted(runs.endings.items(), key=lambda item: -item[1]))


def source_text(rehearsal: Rehearsal) -> str:
    """What it was rehearsed on."""
    if rehearsal.snapshot_hash:
        return f"a copy of {rehearsal.snapshot} (Kubernetes {rehearsal.kubernetes})"
    return f"{rehearsal.snapshot} (Kubernetes {rehearsal.kubernetes})"


def how_often(rehearsal: Rehearsal) -> str:
    """``20 seeds``, ``each of 12 nodes, 1 seed``."""
    seeds = count_of(len(rehearsal.seeds), "seed")
    victims = f"each of {len(rehearsal.runs.victims)} {rehearsal.each}s, " if rehearsal.each else ""
    return f"{victims}{seeds}"


def side_by_side(rehearsal: Rehearsal) -> list[tuple[str, str, str]]:
    """What differs between the runs without and with the changes: name, without, with."""
    before, after = rehearsal.without, rehearsal.runs
    if before is None:
        return []
    rows = [("runs", endings(before), endings(after))]
    rows += _paired({each.name: _band_cell(each) for each in before.expectations}, after.expectations)
    risks = {f"{each.title}: {each.subject}": _risk_cell(each.length, each.count, each.share) for each in before.risks}
    others = {f"{each.title}: {each.subject}": _risk_cell(each.length, each.count, each.share) for each in after.risks}
    rows += [(name, risks.get(name, "no"), others.get(name, "no")) for name in dict.fromkeys([*risks, *others])]
    ranks, ranked = ({rank.victim: f"{rank.score:g} points" for rank in runs.victims} for runs in (before, after))
    rows += [(name, ranks.get(name, "not there"), ranked.get(name, "not there")) for name in {**ranks, **ranked}]
    return rows


def _paired(before: dict[str, str], after: Sequence[ExpectationBand]) -> list[tuple[str, str, str]]:
    cells = {each.name: _band_cell(each) for each in after}
    return [(name, before.get(name, ""), cells.get(name, "")) for name in dict.fromkeys([*before, *cells])]


def _band_cell(band: ExpectationBand) -> str:
    return ", ".join(part for part in (_badges(band), times(band)) if part)


def _risk_cell(length: str, count: int, share: str) -> str:
    return ", ".join(part for part in (count_of(count, "pod"), length, share) if part)
