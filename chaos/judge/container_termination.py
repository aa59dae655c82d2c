"""When the kubelet began to stop pods, and when their containers ended: by the node's own clock, to the second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chaos.judge.pods import node_of
from chaos.judge.signals import source_time
from chaos.model.evidence import is_number
from chaos.model.kube import ContainerStateTerminated, Pod, full_name, is_finished
from chaos.model.timeline import History, Timeline, Version

_UNKNOWN_REASON = "Unknown"  # reason of a container that had ended when its runtime looked again, as after a boot
_RESOLUTION = 1.0  # resolution of times in Events and container states
# pkg/kubelet/nodeshutdown/nodeshutdown_manager.go, logged at -v1
_KILL_MESSAGE = re.compile(r'Shutdown manager killing pod with gracePeriod" pod="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Interval:
    """A moment, not before ``lo`` and not after ``hi``; we saw it at ``t``, in line ``seq``."""

    lo: float
    hi: float
    t: float
    seq: int


def stop_times(timeline: Timeline, node: str, after: float) -> dict[str, Interval]:
    """When the kubelet of a node first began to stop containers of a pod (by uid), as told after a moment.

    From its Killing Events, and from its journal where that was read.
    """
    found: dict[str, Interval] = {}
    for uid, moment in sorted(
        (*_killing_events(timeline, node), *_journal_stops(timeline, node)), key=lambda told: told[1].lo
    ):
        if moment.t > after and moment.hi > after - _RESOLUTION:
            found.setdefault(uid, moment)
    return found


def _killing_events(timeline: Timeline, node: str) -> Iterator[tuple[str, Interval]]:
    for entry, event in timeline.events:
        about, began = event.involved_object, source_time(event.first_timestamp)
        stopping = event.reason == "Killing" and (event.message or "").startswith("Stopping container")
        if stopping and about and event.source and event.source.host == node and began is not None:
            yield about.uid, Interval(began, began + _RESOLUTION, entry.t, entry.seq)


def _journal_stops(timeline: Timeline, node: str) -> Iterator[tuple[str, Interval]]:
    pods = {uid: history.last.object for uid, history in timeline.pods.items()}
    uids = {full_name(pod.metadata): uid for uid, pod in pods.items() if node_of(pod) == node}
    for reading in timeline.readings(node, "kubelet-journal"):
        for line in _journal_entries(reading.value):
            match = _KILL_MESSAGE.search(str(line.get("message", "")))
            if match and match[1] in uids and is_number(line.get("t")):
                yield uids[match[1]], Interval(line["t"], line["t"], reading.t, reading.seq)


def _journal_entries(value: Any) -> list[dict[str, Any]]:
    lines = value.get("lines") if isinstance(value, dict) else None
    return [line for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []


def finished_version(history: History[Pod]) -> Version[Pod] | None:
    """The first version in which it is finished, and that tells when each of its containers ended."""
    return next(
        (v for v in history if not v.final_state_unknown and is_finished(v.object) and _end_times(v.object)), None
    )


def end_of(version: Version[Pod]) -> Interval:
    """When the last container of a finished pod ended."""
    last = max(_end_times(version.object))
    return Interval(last, last + _RESOLUTION, version.t, version.seq)


def terminated_states(pod: Pod) -> list[ContainerStateTerminated]:
    """How each container that has ended did."""
    statuses = (pod.status.container_statuses if pod.status else None) or ()
    return [c.state.terminated for c in statuses if c.state and c.state.terminated]


def _end_times(pod: Pod) -> list[float]:
    """When each container ended; empty unless that is known of all of them."""
    ends = [source_time(state.finished_at) for state in terminated_states(pod) if state.reason != _UNKNOWN_REASON]
    number = len((pod.status.container_statuses if pod.status else None) or ())
    known = [end for end in ends if end is not None]
    return known if len(known) == number else []


def earliest_of(moments: Iterable[Interval]) -> Interval:
    """When the first of them was."""
    known = list(moments)
    earliest = min(known, key=lambda m: m.lo)
    return Interval(earliest.lo, min(m.hi for m in known), earliest.t, earliest.seq)
