"""A static SVG of the lanes, for readers without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.reports.markup import Html, join, tag
from chaos.reports.run.outline import format_offset, origin
from chaos.reports.run.page.lanes import Lane, affected_lanes
from chaos.reports.run.page.names import own_namespace, short_names
from chaos.reports.run.page.page_data import window
from chaos.reports.run.steps import step_groups

_WIDTH, _LABEL, _ROW, _TOP, _MAX_LANES = 1160, 260, 18, 24, 120


def render_svg(result: RunResult, timeline: Timeline, lanes: list[Lane]) -> Html:
    """Draw nodes and pods that the run affected, at most 120 lanes, with steps as vertical lines."""
    targets = {node for nodes in result.targets.values() for node in nodes}
    affected = affected_lanes(lanes, targets, (), origin(result))
    names = short_names(lanes, own_namespace(timeline.meta, lanes))
    shown = [(lane, name) for lane, name, is_shown in zip(lanes, names, affected, strict=True) if is_shown][:_MAX_LANES]
    begin, end = window(result, timeline)
    height = _TOP + _ROW * len(shown) + 4

    def x(t: float) -> str:
        return f"{_LABEL + (min(max(t, begin), end) - begin) / (end - begin) * (_WIDTH - _LABEL):.1f}"

    rows = [_row(lane, name, index, x) for index, (lane, name) in enumerate(shown)]
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


def _row(lane: Lane, label: str, index: int, x: Callable[[float], str]) -> Html:
    y = _TOP + index * _ROW
    bars = [
        tag("rect", x=x(s.start), width=f"{max(1.0, float(x(s.end)) - float(x(s.start))):.1f}", y=str(y + 3),
            height=str(_ROW - 6), class_=f"s-{s.state}")
        for s in lane.spans
    ]  # fmt: skip
    indent = "4" if lane.kind == "node" else "16"
    name = label if len(label) < 42 else label[:40] + "…"
    return tag("g", tag("text", name, x=indent, y=str(y + 13), class_=lane.kind), join(bars))
