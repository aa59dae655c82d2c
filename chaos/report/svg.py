"""A static SVG of the lanes, for readers without scripts."""

from __future__ import annotations

from collections.abc import Callable

from chaos.model.result import RunResult
from chaos.model.timeline import Timeline
from chaos.report.markup import Html, join, tag
from chaos.report.outline import format_offset, origin
from chaos.report.page_data import window
from chaos.report.timeline_lanes import Lane

_WIDTH, _LABEL, _ROW, _TOP, _MAX_LANES = 1160, 260, 18, 24, 120


def render_svg(result: RunResult, timeline: Timeline, lanes: list[Lane]) -> Html:
    """Draw nodes and the pods that changed, at most 120 lanes, with steps as vertical lines."""
    shown = [lane for lane in lanes if lane.kind == "node" or lane.has_changes][:_MAX_LANES]
    begin, end = window(result, timeline)
    height = _TOP + _ROW * len(shown) + 4

    def x(t: float) -> str:
        return f"{_LABEL + (min(max(t, begin), end) - begin) / (end - begin) * (_WIDTH - _LABEL):.1f}"

    rows = [_row(lane, index, x) for index, lane in enumerate(shown)]
    lines = [
        tag("g", tag("line", x1=x(s.begin), x2=x(s.begin), y1="12", y2=str(height), class_="step"),
            tag("text", f"{s.step} {format_offset(s.begin, origin(result))}", x=x(s.begin), y="11"))
        for s in result.steps if s.begin is not None
    ]  # fmt: skip
    start = origin(result)
    times = f"from {format_offset(begin, start)} to {format_offset(end, start)}"
    label = f"{len(shown)} of {len(lanes)} lanes {times}"
    view = f"0 0 {_WIDTH} {height}"
    return tag("svg", tag("title", label), join(rows), join(lines), viewBox=view, role="img", class_="still")


def _row(lane: Lane, index: int, x: Callable[[float], str]) -> Html:
    y = _TOP + index * _ROW
    bars = [
        tag("rect", x=x(s.start), width=f"{max(1.0, float(x(s.end)) - float(x(s.start))):.1f}", y=str(y + 3),
            height=str(_ROW - 6), class_=f"s-{s.state}")
        for s in lane.spans
    ]  # fmt: skip
    indent = "4" if lane.kind == "node" else "16"
    name = lane.name if len(lane.name) < 42 else lane.name[:40] + "…"
    return tag("g", tag("text", name, x=indent, y=str(y + 13), class_=lane.kind), join(bars))
