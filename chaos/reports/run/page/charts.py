"""Charts next to the lanes: counts over time, with their bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chaos.core.kube import EndpointSlice, Workload, is_ready
from chaos.core.timeline import History, Timeline
from chaos.core.verdict import ValueLimit

_SERVICE_NAME = "kubernetes.io/service-name"
_MAX_CHARTS, _MAX_POINTS = 24, 2000
_LISTED = 1.0  # seconds that the first lists take

Point = tuple[float, float | None]  # epoch seconds, value; None: not known


@dataclass(frozen=True, slots=True)
class Chart:
    """Values over time. ``is_step``: a value holds until the next point. ``bounds``: (label, value)."""

    name: str
    unit: str
    points: tuple[Point, ...]
    is_step: bool = True
    bounds: tuple[tuple[str, float], ...] = ()


def charts(timeline: Timeline, since: float, limits: Sequence[ValueLimit] = ()) -> list[Chart]:
    """Ready nodes, probes, and the workloads, Services and queries whose values changed; at most 24.

    ``since``, in epoch seconds: losses before it do not count for the order. ``limits``: of expectations; limits of a
    latency and of the value of a query are drawn as bounds, the others belong to no chart.
    """
    found = [
        *_ready_nodes(timeline),
        *_probes(timeline, limits),
        *_queries(timeline, limits),
        *_workloads(timeline, since),
        *_endpoints(timeline),
    ]
    return found[:_MAX_CHARTS]


def _ready_nodes(timeline: Timeline) -> Iterator[Chart]:
    if not timeline.nodes:
        return
    changes: list[tuple[float, int]] = []
    for history in timeline.nodes.values():
        was_ready = False
        for version in history:
            now_ready = not version.is_deleted and is_ready(version.object)
            if now_ready != was_ready:
                changes.append((version.t, 1 if now_ready else -1))
            was_ready = now_ready
    yield Chart("Ready nodes", "nodes", _counted(changes, timeline), bounds=(("of", float(len(timeline.nodes))),))


def _counted(changes: Iterable[tuple[float, int]], timeline: Timeline) -> tuple[Point, ...]:
    """The running sum, one point for each moment."""
    ordered = sorted(changes)
    points: dict[float, float] = {timeline.start: 0.0}
    total = 0.0
    for t, change in ordered:
        total += change
        points[timeline.start if t < timeline.start + _LISTED else t] = total  # the first lists are one moment
    return _thinned(list(points.items()))


def _workloads(timeline: Timeline, since: float) -> Iterator[Chart]:
    """Those that changed: the greatest loss first, then the longest. DaemonSets, which lose one by node, last."""
    found = []
    for (plural, namespace, name), history in sorted(timeline.workloads.items()):
        points = _distinct((v.t, None if v.is_deleted else float(_available(v.object))) for v in history)
        if plural == "replicasets" or len(points) < 2:
            continue
        desired = float(_desired(history.last.object))
        chart = Chart(f"{namespace}/{name} available", "replicas", _thinned(points), bounds=(("desired", desired),))
        least, lost = _loss(points, desired, since, timeline.end)
        found.append((plural == "daemonsets", least / max(1.0, desired), -lost, chart))
    return (chart for *_, chart in sorted(found, key=lambda item: item[:3]))


def _loss(points: Sequence[Point], desired: float, since: float, until: float) -> tuple[float, float]:
    """The least value since a moment, and for how many seconds there was less than desired."""
    ends = [t for t, _ in points[1:]] + [until]
    known = [(value or 0.0, end - max(t, since)) for (t, value), end in zip(points, ends, strict=True) if end > since]
    least = min((value for value, _ in known), default=0.0)
    return least, sum(seconds for value, seconds in known if value < desired)


def _available(workload: Workload) -> int:
    status = workload.status
    return (status.available_replicas or status.number_available or 0) if status else 0


def _desired(workload: Workload) -> int:
    replicas = workload.spec.replicas if workload.spec else None
    return replicas if replicas is not None else (workload.status and workload.status.desired_number_scheduled) or 0


def _endpoints(timeline: Timeline) -> Iterator[Chart]:
    services: dict[tuple[str, str], list[History[EndpointSlice]]] = defaultdict(list)
    for (namespace, _), history in timeline.endpointslices.items():
        service = (history.last.object.metadata.labels or {}).get(_SERVICE_NAME)
        if service:
            services[namespace, service].append(history)
    for (namespace, service), histories in sorted(services.items()):
        changes = [change for history in histories for change in _ready_changes(history)]
        points = _counted(changes, timeline)
        if len(points) > 2:
            yield Chart(f"{namespace}/{service} ready endpoints", "endpoints", points)


def _ready_changes(history: History[EndpointSlice]) -> Iterator[tuple[float, int]]:
    before = 0
    for version in history:
        endpoints = () if version.is_deleted else version.object.endpoints or ()
        ready = sum(1 for e in endpoints if e.conditions is None or e.conditions.ready is not False)
        if ready != before:
            yield version.t, ready - before
        before = ready


def _probes(timeline: Timeline, limits: Sequence[ValueLimit]) -> Iterator[Chart]:
    for name, samples in sorted(timeline.probes.items()):
        outcomes = _distinct((s.t, 1.0 if s.result.ok else 0.0) for s in samples)
        yield Chart(f"probe {name} ok", "1 = ok", _thinned(outcomes), bounds=(("ok", 1.0),))
        latencies = [(s.t, round(s.result.seconds * 1000, 1) if s.result.ok else None) for s in samples]
        bounds = [(label, round(value * 1000, 3)) for label, value in _bounds(limits, "probe", name, "latency", {})]
        yield Chart(f"probe {name} latency", "ms", _thinned(latencies), is_step=False, bounds=tuple(bounds))


def _queries(timeline: Timeline, limits: Sequence[ValueLimit]) -> Iterator[Chart]:
    """The longest series of each query: the range of the run where there is one, else the instants."""
    for name, samples in sorted(timeline.prometheus.items()):
        series: dict[tuple[tuple[str, str], ...], dict[float, float | None]] = defaultdict(dict)
        for sample in samples:
            for one in sample.result.series:
                series[tuple(sorted(one.labels.items()))].update(one.values)
        for labels, values in sorted(series.items(), key=lambda item: -len(item[1]))[:3]:
            words = ", ".join(f"{key}={value}" for key, value in labels)
            title = f"{name} {{{words}}}" if words else name
            bounds = _bounds(limits, "query", name, "value", dict(labels))
            yield Chart(title, "", _thinned(sorted(values.items())), is_step=False, bounds=bounds)


def _bounds(
    limits: Sequence[ValueLimit], source: str, name: str, measure: str, labels: Mapping[str, str]
) -> tuple[tuple[str, float], ...]:
    """The limits of one series, each number once: which side is good depends on the expectation."""
    found = {
        limit.value
        for limit in limits
        if (limit.source, limit.name, limit.measure) == (source, name, measure)
        and limit.labels.items() <= labels.items()
    }
    return tuple(("limit", value) for value in sorted(found))


def _distinct(points: Iterable[Point]) -> list[Point]:
    """Points whose value differs from the previous one."""
    found = list(points)
    return found[:1] + [after for before, after in pairwise(found) if after[1] != before[1]]


def _thinned(points: Sequence[Point]) -> tuple[Point, ...]:
    """At most about 3,000 points: the lowest, the highest and a gap of each stretch, so that no outlier is lost."""
    if len(points) <= _MAX_POINTS:
        return tuple(points)
    size = -(-len(points) * 2 // _MAX_POINTS)
    stretches = (points[first : first + size] for first in range(0, len(points), size))
    return tuple(point for stretch in stretches for point in _essence(stretch))


def _essence(stretch: Sequence[Point]) -> list[Point]:
    """The lowest and the highest point, and the first one without a value, oldest first."""
    known = [point for point in stretch if point[1] is not None]
    gap = next((point for point in stretch if point[1] is None), None)
    saved = {gap} if gap else set()
    if known:
        saved |= {min(known, key=lambda p: p[1] or 0.0), max(known, key=lambda p: p[1] or 0.0)}
    return sorted(saved, key=lambda p: p[0])
