"""Lanes of the timeline chart: the states of each node and pod over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.model.kube import Node, Pod, full_name, is_finished
from chaos.model.text import printable
from chaos.model.timeline import Entry, History, Timeline, Version
from chaos.report.describe import disruption, node_state, node_text, pod_state, pod_text, taints

UNSCHEDULED = "not scheduled"
_MAX_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Span:
    """A state during [start, end), in epoch seconds; ``text`` describes the state."""

    start: float
    end: float
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked moment; ``kind`` is disruption or gone."""

    t: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    """States of one object. ``group`` is the node; ``has_changes``: more than one state; ``taints``: only of nodes."""

    kind: str
    key: str  # node name or pod uid
    name: str
    group: str
    has_changes: bool
    spans: tuple[Span, ...]
    taints: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()


def lanes(timeline: Timeline, targets: Iterable[str] = ()) -> list[Lane]:
    """Lanes grouped by node: targets first, each node before its pods, pods without a node last."""
    first = set(targets)
    pods = [_pod_lane(uid, history, timeline) for uid, history in timeline.pods.items()]
    nodes = [_node_lane(name, history, timeline) for name, history in timeline.nodes.items()]

    def position(lane: Lane) -> tuple[bool, bool, str, bool, str, float]:
        begin = lane.spans[0].start if lane.spans else timeline.end
        return (lane.group == UNSCHEDULED, lane.group not in first, lane.group, lane.kind != "node", lane.name, begin)

    return sorted((*nodes, *(p for p in pods if p.spans)), key=position)


def lane_of(entry: Entry, timeline: Timeline) -> str:
    """Key of the lane that an entry belongs to, "" without one."""
    if entry.kind == "pods":
        return str(entry.object.metadata.uid)
    if entry.kind == "nodes":
        return str(entry.object.metadata.name)
    about = entry.object.involved_object if entry.kind == "events" else None
    if about is None:
        return entry.node
    return about.uid if about.uid in timeline.pods else about.name if about.name in timeline.nodes else ""


def _node_lane(name: str, history: History[Node], timeline: Timeline) -> Lane:
    states = _spans(((v, node_state(v.object), node_text(v.object)) for v in history), timeline.end)
    spans = _spans(((v, "taint", ", ".join(taints(v.object))) for v in history), timeline.end)
    tainted = tuple(span for span in spans if span.text)
    has_changes = len(states) > 1 or bool(tainted)
    return Lane("node", name, printable(name), name, has_changes, states, tainted, _deletions(history))


def _pod_lane(uid: str, history: History[Pod], timeline: Timeline) -> Lane:
    states = _spans(((v, pod_state(v.object), pod_text(v.object)) for v in history), timeline.end)
    last = history.last.object
    node = (last.spec.node_name if last.spec else None) or UNSCHEDULED
    marks = (*_disruptions(history), *_deletions(history))
    # Real clusters hold many pods that finished long ago and never change again.
    idle = len(states) == 1 and (is_finished(history.versions[0].object) or not marks)
    has_changes = bool(states) and (not idle or states[0].start > timeline.start + 1)
    return Lane("pod", uid, printable(full_name(last.metadata)), node, has_changes, states, (), marks)


def _spans(versions: Iterable[tuple[Version[Node] | Version[Pod], str, str]], until: float) -> tuple[Span, ...]:
    """Spans of consecutive versions with the same state and text; none while the object does not exist."""
    spans: list[Span] = []
    current: tuple[float, str, str] | None = None
    for version, state, text in versions:
        if current and (version.is_deleted or current[1:] != (state, text)):
            spans.append(Span(current[0], version.t, current[1], printable(current[2], _MAX_LENGTH)))
            current = None
        if not version.is_deleted and current is None:
            current = (version.t, state, text)
    if current:
        spans.append(Span(current[0], until, current[1], printable(current[2], _MAX_LENGTH)))
    return tuple(span for span in spans if span.end > span.start or span is spans[-1])


def _disruptions(history: History[Pod]) -> tuple[Mark, ...]:
    for version in history:
        reason = disruption(version.object)
        if reason:
            return (Mark(version.t, "disruption", printable(f"DisruptionTarget: {reason}", _MAX_LENGTH)),)
    return ()


def _deletions(history: History[Node] | History[Pod]) -> tuple[Mark, ...]:
    text = {False: "deleted", True: "deletion not observed: missing at the next list"}
    return tuple(Mark(v.t, "gone", text[v.final_state_unknown]) for v in history if v.is_deleted)
