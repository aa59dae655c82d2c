"""Times at which the kubelet began to stop pods and at which containers ended, by the node's clock, to the second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chaos.core.evidence import is_number
from chaos.core.kube import ContainerStateTerminated, Pod, full_name, is_finished
from chaos.core.time_bounds import source_time
from chaos.core.timeline import History, Timeline, Version
from chaos.verdicts.judge.pods import node_of

_UNKNOWN_REASON = "Unknown"  # reason of a container that the runtime found terminated, as after a boot
_RESOLUTION = 1.0  # resolution of times in Events and container states
# pkg/kubelet/nodeshutdown/nodeshutdown_manager.go, logged at -v1
_KILL_MESSAGE = re.compile(r'Shutdown manager killing pod with gracePeriod" pod="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Interval:
    """A moment, not before ``lo`` and not after ``hi``; observed at ``t``, in entry ``seq``."""

    lo: float
    hi: float
    t: float
    seq: int


def stop_times(timeline: Timeline, node: str, after: float) -> dict[str, Interval]:
    """Time at which the kubelet first began to stop containers of each pod (by UID), if reported after ``after``.

    Sources are Killing Events, and the kubelet's journal where that was read.
    """
    found: dict[str, Interval] = {}
    stops = (*_killing_events(timeline, node), *_journal_stops(timeline, node))
    for uid, moment in sorted(stops, key=lambda stop: stop[1].lo):
        if moment.t > after and moment.hi > after - _RESOLUTION:
            found.setdefault(uid, moment)
    return found


def _killing_events(timeline: Timeline, node: str) -> Iterator[tuple[str, Interval]]:
    for entry, event in timeline.events.with_reason("Killing"):
        about, began = event.involved_object, source_time(event.first_timestamp)
        stopping = (event.message or "").startswith("Stopping container")
        if stopping and about and event.source and event.source.host == node and began is not None:
            yield about.uid, Interval(began, began + _RESOLUTION, entry.t, entry.seq)


def _journal_stops(timeline: Timeline, node: str) -> Iterator[tuple[str, Interval]]:
    pods = (history.last.object for history in timeline.pods.on_nodes([node]))
    uids = {full_name(pod.metadata): pod.metadata.uid for pod in pods if node_of(pod) == node}
    for reading in timeline.readings(node, "kubelet-journal"):
        for entry in _journal_entries(reading.value):
            match = _KILL_MESSAGE.search(str(entry.get("message", "")))
            if match and match[1] in uids and is_number(entry.get("t")):
                yield uids[match[1]], Interval(entry["t"], entry["t"], reading.t, reading.seq)


def _journal_entries(value: Any) -> list[dict[str, Any]]:
    entries = value.get("lines") if isinstance(value, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def finished_version(history: History[Pod]) -> Version[Pod] | None:
    """First version in which the pod is finished and has the end time of each container; None without one."""
    known = (v for v in history if not v.final_state_unknown)
    return next((v for v in known if is_finished(v.object) and _end_times(v.object)), None)


def end_of(version: Version[Pod]) -> Interval:
    """End of the last container of a finished pod."""
    last = max(_end_times(version.object))
    return Interval(last, last + _RESOLUTION, version.t, version.seq)


def terminated_states(pod: Pod) -> list[ContainerStateTerminated]:
    """Termination states of the containers that have ended."""
    statuses = (pod.status.container_statuses if pod.status else None) or ()
    return [c.state.terminated for c in statuses if c.state and c.state.terminated]


def _end_times(pod: Pod) -> list[float]:
    """End times of all containers; empty unless all are known."""
    ends = [source_time(state.finished_at) for state in terminated_states(pod) if state.reason != _UNKNOWN_REASON]
    count = len((pod.status.container_statuses if pod.status else None) or ())
    known = [end for end in ends if end is not None]
    return known if len(known) == count else []


def earliest_of(moments: Iterable[Interval]) -> Interval:
    """Interval of the first of the moments."""
    known = list(moments)
    earliest = min(known, key=lambda m: m.lo)
    return Interval(earliest.lo, min(m.hi for m in known), earliest.t, earliest.seq)
