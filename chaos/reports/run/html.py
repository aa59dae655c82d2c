"""``report.html`` and the page of a run in progress: self-contained, with a timeline that their script draws."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chaos.core.result import RunResult, Unnoticed
from chaos.core.text import printable
from chaos.core.timeline import Timeline
from chaos.core.verdict import SYMBOLS
from chaos.reports.markup import Html, join, load_assets, policy, render_page, tag
from chaos.reports.run.describe import describe
from chaos.reports.run.outline import SIMULATED, assumed_facts, cited_seqs, format_offset, name_of, origin, run_details
from chaos.reports.run.page.header import render_header
from chaos.reports.run.page.lanes import Lane, affected_lanes, lanes, own_namespace, short_names, without_namespace
from chaos.reports.run.page.page_data import STATES, UNNOTICED, pack, page_data, window
from chaos.reports.run.renderer import Renderer
from chaos.reports.run.steps import PHASES, STEPS, phases, step_groups, step_rows
from chaos.reports.run.verdicts import VERDICTS, Row, cited_first, notes, ranked, rows, unproven_step
from chaos.reports.tables import View, describe_columns, page_table

_STYLES = ("base.css", "timeline.css", "paper.css")
# They share one scope, so that no build step is needed. A further one, which comes last, starts the page.
_SCRIPTS = ("data.js", "view.js", "draw.js", "marks.js", "panel.js", "input.js")
_STATE_NAMES = {"running": "running, not ready", "notready": "node not ready", "unknown": "node unknown"}


def render(result: RunResult, timeline: Timeline) -> str:
    """Render the whole document, ending in a newline."""
    found = lanes(timeline, [node for nodes in result.targets.values() for node in nodes])
    result = without_namespace(result, own_namespace(timeline.meta, found))
    return render_page(
        "run.html",
        _STYLES,
        (*_SCRIPTS, "start.js"),
        title=f"{SYMBOLS[result.status]} {name_of(result)} {result.status}",
        header=render_header(result, timeline),
        still=_still(result, timeline, found),
        details=[("Experiment", result.title), *run_details(result)],
        lists=[
            ("Assumed", assumed_facts(result) or ("Nothing: every bound was read from the cluster.",)),
            ("Notes", notes(result)),
        ],
        footer=SIMULATED if result.simulated else f"nodefall, run {printable(result.run)}",
        data=Html(pack(page_data(result, timeline, found))),
        **_scripted(),
        **_tables(result, timeline),
    )


def _scripted() -> dict[str, Any]:
    """What the controls of the timeline and the script need to know."""
    return {
        "states": [(state, _STATE_NAMES.get(state, state)) for state in STATES],
        "description": Html(json.dumps(describe_columns(VERDICTS))),
    }


def _tables(result: RunResult, timeline: Timeline) -> dict[str, Any]:
    """Verdicts, steps and their evidence: each entry that one of them links to is a footnote."""
    entries = {entry.seq: entry for entry in timeline.entries.select(cited_seqs(result))}
    times, start = {seq: entry.t for seq, entry in entries.items()}, origin(result)
    verdicts = [
        replace(row, links=cited_first(row.verdict, times))
        for row in ranked(row for section in rows(result).values() for row in section)
    ]
    steps = step_rows(result, said=unproven_step(result))  # the top of the page has the reason of this one
    linked = {seq for row in verdicts for seq in row.links} | {seq for row in steps for seq in row.links}
    return {
        "verdicts": page_table(
            VERDICTS,
            verdicts,
            "Every expectation with its verdict, reason and evidence",
            "verdicts stacked",
            attributes=_attributes,
        ),
        "steps": page_table(STEPS, steps, "Steps and their proofs", "stacked"),
        "phases": page_table(PHASES, phases(result), "Phases of each step by node"),
        "evidence": [
            {"seq": seq, "time": format_offset(entry.t, start), "kind": entry.kind, "what": describe(entry)}
            for seq, entry in sorted(entries.items())
            if seq in linked
        ],
    }


def _attributes(row: Row) -> dict[str, str]:
    return {"id": row.key, "data-verdict": row.key, "tabindex": "-1"}


@dataclass(frozen=True, slots=True)
class LiveDocument:
    """The timeline of a report without data, and the content security policy that it is to be served with."""

    html: str
    policy: str


def live_document(title: str) -> LiveDocument:
    """The document of a run with this title; the server sends its data while the run is in progress."""
    styles, scripts = (*_STYLES, "live.css"), (*_SCRIPTS, "live.js")
    verdicts = page_table(VERDICTS, (), "Expectations", "verdicts", view=View.LIVE)
    page = render_page("live.html", styles, scripts, connects=True, title=title, verdicts=verdicts, **_scripted())
    rules = policy(load_assets(*styles), load_assets(*scripts), connects=True)
    return LiveDocument(page, f"{rules}; frame-ancestors 'none'")


_WIDTH, _LABEL, _ROW, _TOP, _MAX_LANES = 1160, 260, 18, 24, 120


def _still(result: RunResult, timeline: Timeline, lanes: list[Lane]) -> Html:
    """Draw nodes and pods that the run affected, at most 120 lanes, with steps as vertical lines."""
    targets = {node for nodes in result.targets.values() for node in nodes}
    affected = affected_lanes(lanes, targets, (), origin(result))
    names = short_names(lanes, own_namespace(timeline.meta, lanes))
    shown = [(lane, name) for lane, name, is_shown in zip(lanes, names, affected, strict=True) if is_shown][:_MAX_LANES]
    begin, end = window(result, timeline)
    height = _TOP + _ROW * len(shown) + 4

    def x(t: float) -> str:
        return f"{_LABEL + (min(max(t, begin), end) - begin) / (end - begin) * (_WIDTH - _LABEL):.1f}"

    rows = [_still_row(lane, name, index, x, result.unnoticed) for index, (lane, name) in enumerate(shown)]
    start = origin(result)
    groups = [
        (start + group["begin"] / 1000, group) for group in step_groups(result, lambda t: round((t - start) * 1000))
    ]
    lines = [
        tag("g", tag("line", x1=x(t), x2=x(t), y1="12", y2=str(height), class_="step"),
            tag("text", _step_label(group, t - start), x=x(t), y="11"))
        for t, group in groups
    ]  # fmt: skip
    times = f"from {format_offset(begin, start)} to {format_offset(end, start)}"
    label = f"{len(shown)} of {len(lanes)} lanes {times}"
    view = f"0 0 {_WIDTH} {height}"
    return tag("svg", tag("title", label), join(rows), join(lines), viewBox=view, role="img", class_="still")


def _step_label(group: dict[str, Any], seconds: float) -> str:
    count = f" x{group['count']}" if group["count"] > 1 else ""
    return f"{group['name']}{count} {format_offset(seconds, 0)}"


def _still_row(lane: Lane, label: str, index: int, x: Callable[[float], str], unnoticed: Sequence[Unnoticed]) -> Html:
    y = _TOP + index * _ROW
    spans = [(s.start, s.end, f"s-{s.state}") for s in lane.spans]
    spans += [(each.since, each.until, UNNOTICED) for each in unnoticed if each.node == lane.key]
    bars = [
        tag("rect", x=x(start), width=f"{max(1.0, float(x(end)) - float(x(start))):.1f}", y=str(y + 3),
            height=str(_ROW - 6), class_=kind)
        for start, end, kind in spans
    ]  # fmt: skip
    indent = "4" if lane.kind == "node" else "16"
    name = label if len(label) < 42 else label[:40] + "…"
    return tag("g", tag("text", name, x=indent, y=str(y + 13), class_=lane.kind), join(bars))


RENDERER = Renderer("html", "report.html", "a self-contained page with a timeline", render)
