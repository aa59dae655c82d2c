"""Lanes of the timeline chart: the states of nodes and pods over time, which the run affected, and names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from chaos.core.kube import Node, Pod, controller_of, full_name, is_finished
from chaos.core.result import RunResult, StepResult
from chaos.core.text import printable
from chaos.core.timeline import Entry, History, Timeline, Version
from chaos.core.verdict import Verdict
from chaos.reports.run.describe import disruption, node_state, node_text, pod_state, pod_text, taints

UNSCHEDULED = "not scheduled"
_MAX_LENGTH = 300
_TEMPLATE_HASH = "pod-template-hash"

Position = tuple[bool, bool, str, bool, str, str, str, float]


@dataclass(frozen=True, slots=True)
class Span:
    """A state during [start, end), in epoch seconds, since the entry ``seq``; ``text`` describes the state."""

    start: float
    end: float
    state: str
    text: str
    seq: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked moment, of the entry ``seq``; ``kind`` is disruption or gone."""

    t: float
    kind: str
    text: str
    seq: int


@dataclass(frozen=True, slots=True)
class Lane:
    """States of one object. ``group`` is the node; ``has_changes``: more than one state; ``taints``: only of nodes.

    ``namespace``, ``owner`` (kind/name of the workload, without the hash of its template) and ``template_hash`` are
    those of a pod, "" if it has none.
    """

    kind: str
    key: str  # node name or pod uid
    name: str
    group: str
    has_changes: bool
    spans: tuple[Span, ...]
    taints: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()
    namespace: str = ""
    owner: str = ""
    template_hash: str = ""


def lanes(timeline: Timeline, targets: Iterable[str] = ()) -> list[Lane]:
    """Lanes grouped by node: targets first, each node before its pods by owner, pods without a node last."""
    first = set(targets)
    pods = (pod_lane(uid, history, timeline.start, timeline.end) for uid, history in timeline.pods.items())
    nodes = (node_lane(name, history, timeline.end) for name, history in timeline.nodes.items())
    return sorted((*nodes, *(p for p in pods if p.spans)), key=lambda lane: position(lane, first))


def position(lane: Lane, targets: Collection[str]) -> Position:
    """The place of a lane among the others."""
    begin = lane.spans[0].start if lane.spans else 0.0
    place = (lane.group == UNSCHEDULED, lane.group not in targets, lane.group)
    return (*place, lane.kind != "node", lane.namespace, lane.owner, lane.name, begin)


def lane_of(entry: Entry, timeline: Timeline) -> str:
    """Key of the lane that an entry belongs to, "" without one."""
    if entry.kind == "pods":
        return str(entry.object.metadata.uid) if entry.object.metadata.uid in timeline.pods else ""
    if entry.kind == "nodes":
        return str(entry.object.metadata.name)
    about = entry.object.involved_object if entry.kind == "events" else None
    if about is None:
        return entry.node
    return about.uid if about.uid in timeline.pods else about.name if about.name in timeline.nodes else ""


def node_lane(name: str, history: History[Node], until: float) -> Lane:
    """The lane of a node. ``until``: end of what lasts, in epoch seconds."""
    states = _spans(((v, node_state(v.object), node_text(v.object)) for v in history), until)
    spans = _spans(((v, "taint", ", ".join(taints(v.object))) for v in history), until)
    tainted = tuple(span for span in spans if span.text)
    has_changes = len(states) > 1 or bool(tainted)
    return Lane("node", name, printable(name), name, has_changes, states, tainted, _deletions(history))


def pod_lane(uid: str, history: History[Pod], since: float, until: float) -> Lane:
    """The lane of a pod, without spans if it never existed. ``since``, ``until``: of the timeline, in epoch seconds."""
    states = _spans(((v, pod_state(v.object), pod_text(v.object)) for v in history), until)
    last = history.last.object
    node = (last.spec.node_name if last.spec else None) or UNSCHEDULED
    marks = (*_disruptions(history), *_deletions(history))
    # Real clusters hold many pods that finished long ago and never change again.
    idle = len(states) == 1 and (is_finished(history.first.object) or not marks)
    has_changes = bool(states) and (not idle or states[0].start > since + 1)
    name, hash_ = printable(full_name(last.metadata)), (last.metadata.labels or {}).get(_TEMPLATE_HASH, "")
    labels = (printable(last.metadata.namespace), printable(_owner(last, hash_)), printable(hash_))
    return Lane("pod", uid, name, node, has_changes, states, (), marks, *labels)


def _owner(pod: Pod, template_hash: str) -> str:
    """``Deployment/web`` for a pod of the ReplicaSet web-6749b54fc9; "" without a controller."""
    owner = controller_of(pod)
    if owner is None:
        return ""
    if owner.kind == "ReplicaSet" and template_hash and owner.name.endswith(f"-{template_hash}"):
        return f"Deployment/{owner.name.removesuffix(f'-{template_hash}')}"
    return f"{owner.kind}/{owner.name}"


def _spans(versions: Iterable[tuple[Version[Node] | Version[Pod], str, str]], until: float) -> tuple[Span, ...]:
    """Spans of consecutive versions with the same state and text; none while the object does not exist."""
    spans: list[Span] = []
    current: tuple[float, int, str, str] | None = None

    def close(end: float) -> None:
        if current:
            begin, seq, state, text = current
            spans.append(Span(begin, end, state, printable(text, _MAX_LENGTH), seq))

    for version, state, text in versions:
        if current and (version.is_deleted or current[2:] != (state, text)):
            close(version.t)
            current = None
        if not version.is_deleted and current is None:
            current = (version.t, version.seq, state, text)
    close(until)
    return tuple(span for span in spans if span.end > span.start or span is spans[-1])


def _disruptions(history: History[Pod]) -> tuple[Mark, ...]:
    for version in history:
        reason = disruption(version.object)
        if reason:
            return (Mark(version.t, "disruption", printable(f"DisruptionTarget: {reason}", _MAX_LENGTH), version.seq),)
    return ()


def _deletions(history: History[Node] | History[Pod]) -> tuple[Mark, ...]:
    text = {False: "deleted", True: "deletion not observed: missing at the next list"}
    return tuple(Mark(v.t, "gone", text[v.final_state_unknown], v.seq) for v in history if v.is_deleted)


def affected_lanes(lanes: Sequence[Lane], targets: Collection[str], cited: Collection[str], since: float) -> list[bool]:
    """Whether each lane is affected. ``cited``: keys of the lanes that evidence belongs to; ``since``: epoch seconds.

    Nodes that are targets or whose condition changed; pods that changed and are on a target, or have the owner of one
    that is. Only changes after ``since`` count.
    """
    owners = {
        (lane.namespace, lane.owner)
        for lane in lanes
        if lane.kind == "pod" and lane.group in targets and _has_changed(lane, since) and _is_replaced(lane)
    }

    def is_affected(lane: Lane) -> bool:
        if lane.key in cited:
            return True
        if lane.kind == "node":
            return lane.key in targets or (len(lane.spans) > 1 and _has_changed(lane, since))
        return (lane.group in targets or (lane.namespace, lane.owner) in owners) and _has_changed(lane, since)

    return [is_affected(lane) for lane in lanes]


def _has_changed(lane: Lane, since: float) -> bool:
    if not lane.has_changes:
        return False
    return lane.spans[-1].start >= since or any(mark.t >= since for mark in lane.marks)


def _is_replaced(lane: Lane) -> bool:
    """Whether another node may get a replacement of the pod."""
    return bool(lane.owner) and not lane.owner.startswith("DaemonSet/")


def own_namespace(meta: Mapping[str, Any], lanes: Sequence[Lane]) -> str:
    """Namespace to leave out: that of the run's workload; otherwise that of most pods that changed; "" without any."""
    named = meta.get("workload")
    if isinstance(named, str) and named:
        return named
    changed = Counter(lane.namespace for lane in lanes if lane.kind == "pod" and lane.has_changes)
    return changed.most_common(1)[0][0] if changed else ""


def short_names(lanes: Sequence[Lane], namespace: str) -> list[str]:
    """A short name for each lane, distinct among pods.

    ``demo/web-6749b54fc9-x8z2k`` is ``web-x8z2k`` if ``namespace`` is demo. Pods whose short names are equal have
    their full names, and pods whose full names are equal a number: ``db-0 #2`` is the second db-0.
    """
    shortened = [_shortened(lane, namespace) for lane in lanes]
    full_names = defaultdict(set)
    for lane, short in zip(lanes, shortened, strict=True):
        full_names[short].add(lane.name)
    names = [short if len(full_names[short]) == 1 else lane.name for lane, short in zip(lanes, shortened, strict=True)]
    return _numbered(lanes, names)


def _shortened(lane: Lane, namespace: str) -> str:
    if lane.kind != "pod":
        return lane.name
    name = lane.name.removeprefix(f"{namespace}/") if namespace else lane.name
    before, hash_, after = name.rpartition(f"-{lane.template_hash}-")
    return f"{before}-{after}" if lane.template_hash and hash_ else name


def _numbered(lanes: Sequence[Lane], names: list[str]) -> list[str]:
    """Number the pods of one name in the order of their first observation."""
    same = defaultdict(list)
    for index, (lane, name) in enumerate(zip(lanes, names, strict=True)):
        if lane.kind == "pod":
            same[name].append(index)
    numbered = list(names)
    for name, indexes in same.items():
        if len(indexes) > 1:
            for number, index in enumerate(sorted(indexes, key=lambda i: lanes[i].spans[0].start), 1):
                numbered[index] = f"{name} #{number}"
    return numbered


def without_namespace(result: RunResult, namespace: str) -> RunResult:
    """The result with ``db-0`` for ``NAMESPACE/db-0`` in the texts of verdicts and steps; "" leaves all as it is."""
    if not namespace:
        return result

    prefix = re.compile(rf"(?<![\w./-]){re.escape(namespace)}/")

    def short(text: str) -> str:
        return prefix.sub("", text)

    parts = {
        name: tuple(_verdict(verdict, short) for verdict in getattr(result, name))
        for name in ("steady_state", "hypothesis", "abort", "recovery")
    }
    texts = {name: short(getattr(result, name)) for name in ("headline", "sentence")}
    return msgspec.structs.replace(result, **parts, **texts, steps=tuple(_step(step, short) for step in result.steps))


def _verdict(verdict: Verdict, short: Callable[[str], str]) -> Verdict:
    return replace(
        verdict,
        because=short(verdict.because),
        expected=short(verdict.expected),
        observed=short(verdict.observed),
        sentence=short(verdict.sentence),
    )


def _step(step: StepResult, short: Callable[[str], str]) -> StepResult:
    return msgspec.structs.replace(step, because=short(step.because))
