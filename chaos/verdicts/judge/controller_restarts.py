"""Restarts of kube-controller-manager during a run: its clocks are in memory, and begin again.

The 6 minutes before a forced detach (pkg/controller/volume/attachdetach/cache SetDetachRequestTime), tolerationSeconds
(TEC), the grace period of silent nodes (NLC nodeHealthMap), back-offs and counters. A new process registers every node
(NLC monitorNodeHealth, Event RegisteredNode), also after a change of the leader.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.indexes import CONTROLLER_MANAGER
from chaos.core.kube import Event, Pod
from chaos.core.labels import CONTROL_PLANE_LABELS
from chaos.core.result import ForeignFault
from chaos.core.time_bounds import source_time
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.foreign_case import Case, ForeignKind
from chaos.verdicts.judge.own_changes import OwnChanges
from chaos.verdicts.judge.writers import component

_NAME = CONTROLLER_MANAGER
_TEXT = f"{_NAME} restarted: the clocks of its controllers began again"
_NEW_NODE_SECONDS = 60.0  # a Node that is younger is registered because it is new


def restart_faults(case: Case, begin: float | None) -> Iterator[ForeignFault]:
    """Restarts after ``begin``, of the first step, that no step on a machine of the control plane explains."""
    if begin is None:
        return
    found = [*_announced(case.timeline, begin), *_container_restarts(case.timeline, begin)]
    for at, since, seq in sorted(found):
        if not _is_explained(case.timeline, case.own, at):
            yield ForeignFault("", ForeignKind.CONTROLLER_RESTART, _TEXT, "unknown", at, since, (seq,))


def _announced(timeline: Timeline, begin: float) -> Iterator[tuple[float, float, int]]:
    """Observation, time and entry of each Event that only a new process, or a new leader, writes."""
    for reason, is_new in (("RegisteredNode", _is_registered_again), ("LeaderElection", _is_new_leader)):
        for entry, event in timeline.events.with_reason(reason):
            t = source_time(event.last_timestamp or event.event_time or event.first_timestamp)
            if t is not None and t > begin and entry.t > begin and is_new(timeline, event, t, entry.t):
                yield entry.t, min(t, entry.t), entry.seq


def _is_registered_again(timeline: Timeline, event: Event, t: float, received: float) -> bool:
    """Whether the Event is about a Node that existed long before. A Node can be deleted, and created again."""
    about = event.involved_object
    history = timeline.nodes.get(about.name if about else "")
    if component(event) != "node-controller" or history is None:
        return False
    known = history.at(received) or history.first
    created = [source_time(version.object.metadata.creation_timestamp) for version in (known, history.last)]
    is_new = any(abs(t - (history.first.t if c is None else c)) <= _NEW_NODE_SECONDS for c in created)
    return not known.is_deleted and not is_new


def _is_new_leader(_: Timeline, event: Event, __: float, ___: float) -> bool:
    about = event.involved_object
    is_lease = about is not None and (about.kind, about.name) == ("Lease", _NAME)
    return is_lease and (event.message or "").endswith("became leader")


def _container_restarts(timeline: Timeline, begin: float) -> Iterator[tuple[float, float, int]]:
    """The same for restarts of the only controller manager's container; of several, not each is the leader."""
    pods = timeline.pods.controller_managers
    if len(pods) != 1:
        return
    before = None
    for version in pods[0]:
        number = _restarts(version.object)
        if before is not None and before[1] < number and version.t > begin:
            yield version.t, max(before[0], begin), version.seq
        before = version.t, number


def _restarts(pod: Pod) -> int:
    statuses = (pod.status.container_statuses if pod.status else None) or ()
    return sum(status.restart_count or 0 for status in statuses)


def _is_explained(timeline: Timeline, own: OwnChanges, t: float) -> bool:
    for node in own.nodes:
        history = timeline.nodes.get(node)
        labels = (history.versions[0].object.metadata.labels or {}) if history else {}
        if any(label in labels for label in CONTROL_PLANE_LABELS) and own.began_any(node, t):
            return True
    return False
