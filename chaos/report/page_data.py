"""Input of the HTML report's script: plain JSON, times in seconds after the origin."""

from __future__ import annotations

from typing import Any

from chaos.model.result import RunResult
from chaos.model.text import on_node, printable
from chaos.model.timeline import Timeline
from chaos.model.verdict import SYMBOLS
from chaos.report.outline import cited_seqs, origin, sections, step_text
from chaos.report.timeline_lanes import Lane, Span, lane_of


def page_data(result: RunResult, timeline: Timeline, lanes: list[Lane]) -> dict[str, Any]:
    """Return lanes, steps, verdicts, blinds and evidence; the functions below define each shape."""
    start = origin(result)
    begin, end = window(result, timeline)
    return {
        "start": _relative(begin, start),
        "end": _relative(end, start),
        "lanes": [_lane(lane, start, result) for lane in lanes],
        "steps": _steps(result, start),
        "verdicts": _verdicts(result, start),
        "blinds": _blinds(timeline, start, end),
        "evidence": _evidence(result, timeline, lanes, start),
    }


def window(result: RunResult, timeline: Timeline) -> tuple[float, float]:
    """Return begin and end of the chart: of the timeline, or of the run if the timeline is empty. At least 1 s long."""
    begin, end = (timeline.start, timeline.end) if timeline.entries else (result.started, result.ended)
    return begin, max(end, begin + 1)


def _relative(t: float, start: float) -> float:
    return round(t - start, 3)


def _lane(lane: Lane, start: float, result: RunResult) -> dict[str, Any]:
    targets = {node for nodes in result.targets.values() for node in nodes}
    return {
        "kind": lane.kind,
        "name": lane.name,
        "group": printable(lane.group),
        "target": lane.kind == "node" and lane.key in targets,
        "changed": lane.has_changes,
        "spans": [_span(span, start) for span in lane.spans],
        "taints": [_span(span, start) for span in lane.taints],
        "marks": [[_relative(mark.t, start), mark.kind, mark.text] for mark in lane.marks],
    }


def _span(span: Span, start: float) -> list[Any]:
    return [_relative(span.start, start), _relative(span.end, start), span.state, span.text]


def _steps(result: RunResult, start: float) -> list[dict[str, Any]]:
    return [
        {
            "name": printable(s.step),
            "node": printable(s.node),
            "begin": _relative(s.begin, start),
            "end": _relative(s.begin if s.returned is None else s.returned, start),
            "text": printable(f"{on_node(s.action, s.node)}: {step_text(s)}"),
        }
        for s in result.steps
        if s.begin is not None
    ]


def _verdicts(result: RunResult, start: float) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{section.key}-{index}",
            "name": printable(v.name),
            "status": str(v.status),
            "symbol": SYMBOLS[v.status],
            "because": printable(v.because),
            "start": None if v.start is None else _relative(v.start, start),
            "deadline": None if v.deadline is None else _relative(v.deadline, start),
            "at": None if v.at is None else _relative(v.at, start),
            "evidence": list(v.evidence),
        }
        for section in sections(result)
        for index, v in enumerate(section.verdicts)
    ]


def _blinds(timeline: Timeline, start: float, end: float) -> list[dict[str, Any]]:
    """Blind windows. ``kind`` nodes or pods hatches those lanes, recording all lanes, ``node`` one lane."""
    found = []
    for blind in timeline.blind_windows:
        kind, _, node = blind.source.partition("@")
        until = end if blind.end is None else blind.end
        text = printable(f"{blind.source} could not be observed: {blind.reason}")
        found.append(
            {
                "kind": kind,
                "node": node,
                "start": _relative(blind.start, start),
                "end": _relative(until, start),
                "text": text,
            }
        )
    return found


def _evidence(result: RunResult, timeline: Timeline, lanes: list[Lane], start: float) -> dict[str, list[Any]]:
    """Cited entries by sequence number: [time, index of the lane or -1]."""
    index_of = {lane.key: index for index, lane in enumerate(lanes)}
    cited = set(cited_seqs(result))
    return {
        str(e.seq): [_relative(e.t, start), index_of.get(lane_of(e, timeline), -1)]
        for e in timeline.entries
        if e.seq in cited
    }
