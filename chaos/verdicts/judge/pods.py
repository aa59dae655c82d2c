"""Accessors of pods and their controllers: node, owner, disruption, tolerations, the end of containers, counts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chaos.core.evidence import is_number
from chaos.core.kube import (
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    Workload,
    full_name,
    is_finished,
    pod_condition,
)
from chaos.core.time_bounds import source_time
from chaos.core.timeline import History, Timeline, Version

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_UNKNOWN_REASON = "Unknown"  # reason of a container that the runtime found terminated, as after a boot
_RESOLUTION = 1.0  # resolution of times in Events and container states
# pkg/kubelet/nodeshutdown/nodeshutdown_manager.go, logged at -v1
_KILL_MESSAGE = re.compile(r'Shutdown manager killing pod with gracePeriod" pod="([^"]+)"')
KINDS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}


def node_of(pod: Pod) -> str:
    """The name of the node to which the pod is bound, or ""."""
    return (pod.spec.node_name if pod.spec else None) or ""


def is_ready(pod: Pod) -> bool:
    """Whether the condition Ready is True."""
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def disruption(pod: Pod) -> str:
    """Reason of the DisruptionTarget condition if its status is True, else ""."""
    found = pod_condition(pod, "DisruptionTarget")
    return (found.reason or "") if found and found.status == "True" else ""


def finished_versions(history: Iterable[Version[Pod]]) -> dict[int, Version[Pod]]:
    """First finished version, by sequence number of each version from it on.

    That version has the reason of the end: taint eviction, for one, overwrites DisruptionTarget of a finished pod just
    before it deletes the pod.
    """
    first: Version[Pod] | None = None
    result = {}
    for version in history:
        if first is None and not version.final_state_unknown and is_finished(version.object):
            first = version
        if first is not None:
            result[version.seq] = first
    return result


def pod_facts(pod: Pod) -> dict[str, float | None]:
    """Facts of one pod for bounds; an endless toleration is infinite, a missing one 0."""
    grace = pod.spec.termination_grace_period_seconds if pod.spec else None
    return {
        "pod.terminationGracePeriodSeconds": None if grace is None else float(grace),
        "toleration(not-ready)": toleration(pod, NOT_READY),
        "toleration(unreachable)": toleration(pod, UNREACHABLE),
    }


def toleration(pod: Pod, taint: str) -> float | None:
    """Seconds for which ``taint:NoExecute`` is tolerated: the minimum of the matching tolerations.

    Like GetMinTolerationTime of pkg/controller/tainteviction. None if the tolerations are unknown.
    """
    if pod.spec is None:
        return None
    seconds: float | None = None
    for entry in pod.spec.tolerations or ():
        same_key = entry.key == taint or (not entry.key and entry.operator == "Exists")
        # The two taints have no value, so an Equal toleration matches only an empty one.
        same_value = entry.operator == "Exists" or not entry.value
        if entry.effect in (None, "", "NoExecute") and same_key and same_value:
            own = math.inf if entry.toleration_seconds is None else float(max(0, entry.toleration_seconds))
            seconds = own if seconds is None else min(seconds, own)
    return 0.0 if seconds is None else seconds


def pod_at(history: History[Pod], t: float) -> Pod | None:
    """State of the pod at ``t``; None if the pod did not exist then."""
    version = history.at(t)
    return None if version is None or version.is_deleted else version.object


def container_statuses(pod: Pod) -> list[ContainerStatus]:
    """Statuses of the containers, without init containers."""
    return (pod.status.container_statuses if pod.status else None) or []


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
    """The first version in which the pod is finished and each container has an end time, or None."""
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


def counts(plural: str, workload: Workload) -> tuple[int, int]:
    """Numbers of available pods (of a StatefulSet: ready pods) and of desired pods."""
    status = workload.status
    if plural == "daemonsets":
        return (status.number_available or 0, status.desired_number_scheduled or 0) if status else (0, 0)
    replicas = workload.spec.replicas if workload.spec else None
    ready = (status.available_replicas if plural == "deployments" else status.ready_replicas) if status else None
    return ready or 0, 1 if replicas is None else replicas
