"""When the kubelet began to stop pods, and when their containers ended: by the node's own clock, to the second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chaos.judge.pods import on_node
from chaos.judge.signals import source_time
from chaos.model.evidence import is_number
from chaos.model.kube import Pod, Terminated, full_name, is_finished
from chaos.model.timeline import History, Timeline, Version

_LOST = "Unknown"  # reason of a container that had ended when its runtime looked again, as after a boot
_SECOND = 1.0  # resolution of times in Events and container states
# pkg/kubelet/nodeshutdown/nodeshutdown_manager.go, logged at -v1
_KILLING = re.compile(r'Shutdown manager killing pod with gracePeriod" pod="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Between:
    """A moment, not before ``lo`` and not after ``hi``; we saw it at ``t``, in line ``seq``."""

    lo: float
    hi: float
    t: float
    seq: int


def stops(timeline: Timeline, node: str, after: float) -> dict[str, Between]:
    """When the kubelet of a node first began to stop containers of a pod (by uid), as told after a moment.

    From its Killing Events, and from its journal where that was read.
    """
    found: dict[str, Between] = {}
    for uid, moment in sorted((*_killing(timeline, node), *_logged(timeline, node)), key=lambda told: told[1].lo):
        if moment.t > after and moment.hi > after - _SECOND:
            found.setdefault(uid, moment)
    return found


def _killing(timeline: Timeline, node: str) -> Iterator[tuple[str, Between]]:
    for entry, event in timeline.events:
        about, began = event.involved_object, source_time(event.first_timestamp)
        stopping = event.reason == "Killing" and (event.message or "").startswith("Stopping container")
        if stopping and about and event.source and event.source.host == node and began is not None:
            yield about.uid, Between(began, began + _SECOND, entry.t, entry.seq)


def _logged(timeline: Timeline, node: str) -> Iterator[tuple[str, Between]]:
    pods = {uid: history.last.object for uid, history in timeline.pods.items()}
    uids = {full_name(pod.metadata): uid for uid, pod in pods.items() if on_node(pod) == node}
    for reading in timeline.readings(node, "kubelet-journal"):
        for line in _lines(reading.value):
            match = _KILLING.search(str(line.get("message", "")))
            if match and match[1] in uids and is_number(line.get("t")):
                yield uids[match[1]], Between(line["t"], line["t"], reading.t, reading.seq)


def _lines(value: Any) -> list[dict[str, Any]]:
    lines = value.get("lines") if isinstance(value, dict) else None
    return [line for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []


def finished(history: History[Pod]) -> Version[Pod] | None:
    """The first version in which it is finished, and that tells when each of its containers ended."""
    return next((v for v in history if not v.unseen and is_finished(v.object) and _ends(v.object)), None)


def end_of(version: Version[Pod]) -> Between:
    """When the last container of a finished pod ended."""
    last = max(_ends(version.object))
    return Between(last, last + _SECOND, version.t, version.seq)


def terminated(pod: Pod) -> list[Terminated]:
    """How each container that has ended did."""
    statuses = (pod.status.container_statuses if pod.status else None) or ()
    return [c.state.terminated for c in statuses if c.state and c.state.terminated]


def _ends(pod: Pod) -> list[float]:
    """When each container ended; empty unless that is known of all of them."""
    ends = [source_time(state.finished_at) for state in terminated(pod) if state.reason != _LOST]
    number = len((pod.status.container_statuses if pod.status else None) or ())
    known = [end for end in ends if end is not None]
    return known if len(known) == number else []


def first(moments: Iterable[Between]) -> Between:
    """When the first of them was."""
    known = list(moments)
    earliest = min(known, key=lambda m: m.lo)
    return Between(earliest.lo, min(m.hi for m in known), earliest.t, earliest.seq)
