"""Measures of nodes and zones: Ready, taints, and the order in which the nodes of a zone are tainted. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from chaos.core.history import History, Version
from chaos.core.kube import Node, node_condition
from chaos.core.labels import ZONE_LABEL
from chaos.core.timeline import Timeline
from chaos.verdicts.outcome.measure import Kind, Measure
from chaos.verdicts.outcome.names import Names

SHUTDOWN_SEEN, READY_AGAIN = "shutdown seen", "Ready again"
_SHUTTING_DOWN = "node is shutting down"  # pkg/kubelet/nodestatus/setters.go
_CONDITION_TAINTS = ("node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute")


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
