"""When pods serve: Ready, not being deleted, on a machine that is up. Conditions alone are late by the grace period."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from chaos.core.kube import Pod, pod_condition
from chaos.core.timeline import History
from chaos.rehearsal.forecast.finding import Case

_REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


@dataclass(frozen=True, slots=True)
class Outage:
    """``before``: pods that served before the fault. ``none`` and ``fewer``: seconds without one, and with fewer."""

    kind: str
    name: str
    before: int
    none: float
    fewer: float
    lasts: bool


def outages(case: Case) -> list[Outage]:
    """Of replicated workloads that had fewer serving pods than before the fault, by name."""
    changes: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    before: dict[tuple[str, str], int] = defaultdict(int)
    for history in case.timeline.pods.values():
        key = case.owners.of(history.last.object)
        if key[0] not in _REPLICATED:
            continue
        before[key] += _serves_before(history, case)
        for begin, end in _serving(history, case):
            changes[key] += [(begin, 1), *([(end, -1)] if end < case.end else [])]
    found = [_outage(key, count, sorted(changes[key]), case) for key, count in sorted(before.items())]
    return [outage for outage in found if outage.before and outage.fewer > 0]


def _outage(key: tuple[str, str], before: int, moments: list[tuple[float, int]], case: Case) -> Outage:
    count, last, none, fewer = 0, case.fault, 0.0, 0.0
    for t, change in [*moments, (case.end, 0)]:
        none += (t - last) * (count <= 0)
        fewer += (t - last) * (count < before)
        last, count = t, count + change
    return Outage(*key, before, round(none, 3), round(fewer, 3), count <= 0)


def _serves_before(history: History[Pod], case: Case) -> bool:
    version = history.at(case.fault)
    if version is None or version.is_deleted or not _is_ready(version.object):
        return False
    node = (version.object.spec.node_name if version.object.spec else None) or ""
    return not any(begin < case.fault <= end for begin, end in case.down.get(node, ()))


def _serving(history: History[Pod], case: Case) -> Iterator[tuple[float, float]]:
    """Spans after the fault in which a pod serves; the first may begin before it."""
    now = history.at(case.fault)
    versions = [*([now] if now else []), *history.after(case.fault)]
    for version, following in pairwise([*versions, None]):
        assert version is not None  # noqa: S101 - only the last one is
        if version.is_deleted or not _is_ready(version.object):
            continue
        begin, end = max(version.t, case.fault), following.t if following else case.end
        node = (version.object.spec.node_name if version.object.spec else None) or ""
        yield from _without(begin, end, case.down.get(node, ()))


def _without(begin: float, end: float, windows: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    for start, stop in windows:
        if stop <= begin or start >= end:
            continue
        if start > begin:
            yield begin, start
        begin = stop
    if begin < end:
        yield begin, end


def _is_ready(pod: Pod) -> bool:
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True" and pod.metadata.deletion_timestamp is None
