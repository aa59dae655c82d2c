"""The outcome of a fault, from a timeline: measures of nodes, zones, workloads and volumes. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain

from chaos.core.history import History, Version
from chaos.core.kube import Node, Pod, VolumeAttachment, controller_of, is_finished, node_condition, pod_condition
from chaos.core.labels import ZONE_LABEL
from chaos.core.recording import ActionPhase
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.unnoticed import unnoticed
from chaos.verdicts.outcome.measure import Kind, Measure, Names, Outcome
from chaos.verdicts.outcome.pods import pod_measures

SHUTDOWN_SEEN, READY_AGAIN = "shutdown seen", "Ready again"
_SHUTTING_DOWN = "node is shutting down"  # pkg/kubelet/nodestatus/setters.go
_CONDITION_TAINTS = ("node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute")
FEWER, ENOUGH, NONE, SOME = "fewer pods ready", "enough pods ready again", "no pod ready", "a pod ready again"
FEWER_FOR, NONE_FOR = "fewer pods ready for", "no pod ready for"
_MIRRORS = "Node"
ELSEWHERE = "attached to another node"
UNNOTICED_FOR, NOTICED = "off unnoticed for", "off noticed"


def fault_time(timeline: Timeline) -> float | None:
    """When the first action began, in epoch seconds; None if there is none."""
    begins = (entry.t for entry, record in timeline.actions if record.phase == ActionPhase.BEGIN)
    return min(begins, default=None)


def outcome_of(timeline: Timeline, start: float, end: float | None = None) -> Outcome:
    """Measures of what happened from ``start`` to ``end`` (epoch seconds; default: the end of the timeline).

    Targets and the namespace of the experiment's workload have the names of :meth:`Names.of_run`.
    """
    until = timeline.end if end is None else min(end, timeline.end)
    names = Names.of_run(timeline.meta)
    measures = (node_measures, pod_measures, workload_measures, volume_measures, unnoticed_measures)
    found = chain.from_iterable(measure(timeline, start, names) for measure in measures)
    return Outcome(until - start, {measure: round(t - start, 3) for measure, t in found if t <= until})


def node_measures(timeline: Timeline, start: float, names: Names) -> Iterator[tuple[Measure, float]]:
    """Measures of each node that changed after ``start``, and times since the epoch."""
    evicting: dict[str, list[float]] = defaultdict(list)
    for name, history in timeline.nodes.items():
        changes = list(_changes(history, start))
        for what, t in changes:
            yield Measure(Kind.NODE, names.node(name), what), t
        tainted = [t for what, t in changes if what.removeprefix("tainted ") in _CONDITION_TAINTS]
        if tainted:
            zone = (history.last.object.metadata.labels or {}).get(ZONE_LABEL, "")
            evicting[zone or "of no zone"].append(min(tainted))
    for zone, times in evicting.items():
        for rank, t in list(enumerate(sorted(times), 1))[1:]:
            yield Measure(Kind.ZONE, zone, f"node {rank} tainted NoExecute"), t


def _changes(history: History[Node], start: float) -> Iterator[tuple[str, float]]:
    """Names and times of the changes after ``start``; a name that occurs again has its number."""
    seen: Counter[str] = Counter()
    before = history.at(start)
    for version in history.after(start):
        for what in _difference(before, version):
            seen[what] += 1
            yield (what if seen[what] == 1 else f"{what} ({seen[what]})"), version.t
        before = version


def _difference(before: Version[Node] | None, after: Version[Node]) -> Iterator[str]:
    if after.is_deleted:
        yield "removed"
        return
    if before is None or before.is_deleted:
        yield "created"
        return
    (was, seen_before), (now, seen) = _ready(before.object), _ready(after.object)
    if was != now:
        yield READY_AGAIN if now == "True" else f"Ready={now}"
    if seen and not seen_before:
        yield SHUTDOWN_SEEN
    old, new = _taints(before.object), _taints(after.object)
    for taint in sorted(new - old):
        yield f"tainted {taint}"
    for taint in sorted(old - new):
        yield f"untainted {taint}"


def _ready(node: Node) -> tuple[str, bool]:
    """Status of Ready, and whether the kubelet says that the machine shuts down."""
    ready = node_condition(node, "Ready")
    return (ready.status, _SHUTTING_DOWN in (ready.message or "")) if ready else ("unset", False)


def _taints(node: Node) -> set[str]:
    return {f"{taint.key}:{taint.effect}" for taint in (node.spec.taints if node.spec else None) or ()}


def unnoticed_measures(timeline: Timeline, start: float, names: Names) -> Iterator[tuple[Measure, float]]:
    """For how many seconds in all the API called a node or its pods Ready after its machine was off.

    It ends when the API no longer does so, or when the machine runs again.
    """
    totals: dict[str, float] = defaultdict(float)
    for each in unnoticed(timeline):
        if each.since > start and each.is_over:
            totals[each.node] += each.seconds
            yield Measure(Kind.NODE, names.node(each.node), NOTICED), each.until
    for node, seconds in totals.items():
        yield Measure(Kind.NODE, names.node(node), UNNOTICED_FOR), start + seconds


def workload_measures(timeline: Timeline, start: float, names: Names) -> Iterator[tuple[Measure, float]]:
    """Measures of each workload with a ready pod at ``start``, and times since the epoch; of ``... for``, seconds.

    A pod that is deleted while Ready counts until it is removed or not Ready, as its containers run. A duration is
    measured if it ended.
    """
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    at_fault: dict[str, int] = defaultdict(int)
    for history in timeline.pods.values():
        controller = controller_of(history.last.object)
        if controller is None or controller.kind == _MIRRORS:
            continue
        owner = names.owner(history.last.object)
        before = history.at(start)
        is_ready = before is not None and not before.is_deleted and _is_ready(before.object)
        at_fault[owner] += is_ready
        if history.last.t > start:
            changes[owner] += _steps(history, start, was_ready=is_ready)
    for owner, steps in changes.items():
        if at_fault[owner]:
            yield from _below(owner, sorted(steps), start, at_fault[owner])


def _steps(history: History[Pod], start: float, *, was_ready: bool) -> Iterator[tuple[float, int]]:
    for version in history.after(start):
        is_ready = not version.is_deleted and _is_ready(version.object)
        if is_ready != was_ready:
            yield version.t, 1 if is_ready else -1
        was_ready = is_ready


def _below(owner: str, steps: list[tuple[float, int]], start: float, at_fault: int) -> Iterator[tuple[Measure, float]]:
    for bound, begin, end, total in ((at_fault, FEWER, ENOUGH, FEWER_FOR), (1, NONE, SOME, NONE_FOR)):
        spans = _spans(steps, at_fault, bound)
        if not spans:
            continue
        yield Measure(Kind.WORKLOAD, owner, begin), spans[0][0]
        last = spans[-1][1]
        if last is not None:
            yield Measure(Kind.WORKLOAD, owner, end), last
            seconds = sum((until or 0.0) - since for since, until in spans)
            yield Measure(Kind.WORKLOAD, owner, total), start + seconds


def _spans(steps: list[tuple[float, int]], ready: int, bound: int) -> list[tuple[float, float | None]]:
    """Times in which fewer than ``bound`` pods were ready; the last one has no end if it did not end."""
    spans: list[tuple[float, float | None]] = []
    since: float | None = None
    for t, change in steps:
        ready += change
        if ready < bound and since is None:
            since = t
        elif ready >= bound and since is not None:
            spans.append((since, t))
            since = None
    return [*spans, (since, None)] if since is not None else spans


def _is_ready(pod: Pod) -> bool:
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True" and not is_finished(pod)


def volume_measures(timeline: Timeline, start: float, names: Names) -> Iterator[tuple[Measure, float]]:
    """Measures of each claim whose volume was attached at ``start``, and times since the epoch."""
    claims = _claims(timeline, names)
    homes: dict[str, str] = {}
    for history in timeline.volumeattachments.values():
        before = history.at(start)
        if before is None or not _is_attached(before):
            continue
        claim, node = claims.get(_volume(before.object), _volume(before.object)), _node(before.object)
        homes[claim] = node
        ended = next((version.t for version in history.after(start) if not _is_attached(version)), None)
        if ended is not None:
            yield Measure(Kind.VOLUME, claim, f"detached from {names.node(node)}"), ended
    elsewhere: dict[str, float] = {}
    for history in timeline.volumeattachments.values():
        obj = history.last.object
        claim = claims.get(_volume(obj), _volume(obj))
        attached = next((version.t for version in history.after(start) if _is_attached(version)), None)
        if attached is not None and claim in homes and _node(obj) != homes[claim]:
            elsewhere[claim] = min(attached, elsewhere.get(claim, attached))
    for claim, t in elsewhere.items():
        yield Measure(Kind.VOLUME, claim, ELSEWHERE), t


def _claims(timeline: Timeline, names: Names) -> dict[str, str]:
    """NAMESPACE/NAME of the claim of each PersistentVolume, by the volume's name."""
    return {
        history.last.object.spec.volume_name: names.object(namespace, name)
        for (namespace, name), history in timeline.persistentvolumeclaims.items()
        if history.last.object.spec and history.last.object.spec.volume_name
    }


def _is_attached(version: Version[VolumeAttachment]) -> bool:
    status = version.object.status
    return not version.is_deleted and bool(status and status.attached)


def _volume(obj: VolumeAttachment) -> str:
    source = obj.spec.source if obj.spec else None
    return (source and source.persistent_volume_name) or obj.metadata.name


def _node(obj: VolumeAttachment) -> str:
    return obj.spec.node_name if obj.spec else ""
