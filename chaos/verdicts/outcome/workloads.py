"""Measures of workloads: how long fewer pods were ready than at the fault, and how long none was. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.core.history import History
from chaos.core.kube import Pod, controller_of, is_finished, pod_condition
from chaos.core.timeline import Timeline
from chaos.verdicts.outcome.measure import Kind, Measure
from chaos.verdicts.outcome.names import Names

FEWER, ENOUGH, NONE, SOME = "fewer pods ready", "enough pods ready again", "no pod ready", "a pod ready again"
FEWER_FOR, NONE_FOR = "fewer pods ready for", "no pod ready for"
_MIRRORS = "Node"


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
