"""Foreign faults: changes of nodes that no step, no undo and no controller of Kubernetes explains.

A machine that others cordon, drain, delete, upgrade or take down during a run makes verdicts inconclusive
(docs/assertions.md). Derived from the timeline alone, so that a run, its recording and a replay agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

from chaos.core.api_fact import PseudoFact
from chaos.core.assertion import Memo
from chaos.core.command import PowerState
from chaos.core.evidence import SAME_BOOT_SECONDS, is_number
from chaos.core.indexes import CONTROLLER_MANAGER
from chaos.core.kube import Event, Pod, pod_condition
from chaos.core.labels import CONTROL_PLANE_LABELS, FIELD_MANAGER
from chaos.core.logs import EntryLog
from chaos.core.machine_evidence import believed_offs
from chaos.core.recording import ADDED, ActionPhase
from chaos.core.registry import PluginRegistry
from chaos.core.result import ForeignFault
from chaos.core.time_bounds import source_time
from chaos.core.timeline import Fact, History, Timeline, Version
from chaos.verdicts.judge.foreign_effect import (
    Case,
    ForeignKind,
    component,
    describe_manager,
    event_author,
    fault,
    field_owner,
)
from chaos.verdicts.judge.foreign_node import StateChanges, node_faults
from chaos.verdicts.judge.own_changes import NodeChange, OwnChanges
from chaos.verdicts.judge.pods import node_of

_EVICTION = "EvictionByEvictionAPI"  # reason of DisruptionTarget
_SETS_CLOCK = "clock-skew"  # the start of PID 1 moves with the clock
_RESTARTED = f"{CONTROLLER_MANAGER} restarted: its controllers restarted their timers"
_NEW_NODE_SECONDS = 60.0  # a Node that is younger is registered because it is new


def foreign_faults(
    timeline: Timeline,
    registry: PluginRegistry,
    targets: Collection[str],
    namespace: str,
    memo: Memo | None = None,
) -> tuple[ForeignFault, ...]:
    """All foreign faults in the order of their observation, each once per node.

    ``targets``: the nodes whose pods count, besides the pods in ``namespace``, the workload's, on any node. ``memo``:
    of the judgement before.
    """
    memo = memo or Memo()
    case = Case(timeline, OwnChanges(timeline, registry))
    begin = next((e.t for e, record in timeline.actions if record.phase == ActionPhase.BEGIN), None)
    read = {node for node, _ in timeline.host}
    changed = memo.keep(StateChanges).update(timeline.nodes)
    names = changed.keys() | (read & timeline.nodes.keys())
    found = [
        each
        for name in sorted(names, key=lambda name: timeline.nodes[name].first_seq)
        if _is_original(timeline.entries, timeline.nodes[name].first_seq, begin)
        for each in (*node_faults(case, name, changed.get(name, ())), *power_faults(case, name))
    ]
    found += _evictions(case, targets, namespace)
    found += restart_faults(case, begin)
    first: dict[str, ForeignFault] = {}
    for each in sorted(found, key=lambda f: (f.at, f.evidence)):
        first.setdefault(each.text, each)
    return tuple(first.values())


def _is_original(entries: EntryLog, seq: int, begin: float | None) -> bool:
    """Whether a Node that was first observed in entry ``seq`` existed before the run. Others set up Nodes that join
    later.

    ``begin``: of the first step.
    """
    return entries.type(seq) != ADDED and (begin is None or entries.time(seq) <= begin)


def _evictions(case: Case, targets: Collection[str], namespace: str) -> Iterator[ForeignFault]:
    """One foreign fault for each node with evicted pods, from its first pod on."""
    found: dict[str, list[tuple[float, float, int, Pod]]] = {}
    for history in case.timeline.pods.disrupted:
        pod = history.last.object
        concerns = node_of(pod) in targets or (namespace and pod.metadata.namespace == namespace)
        if concerns and _is_evicted(pod) and (seen := _first_evicted(history)):
            before, after = seen
            since = case.earliest("pods", before, after)
            if not case.own.overlaps(node_of(pod), NodeChange.EVICTIONS, since, after.t):
                found.setdefault(node_of(pod), []).append((after.t, since, after.seq, pod))
    for node, evicted in found.items():
        at, since, seq, pod = min(evicted, key=lambda e: e[0])
        yield fault(node, ForeignKind.EVICTION, "had pods evicted", _evicted_by(case, node, pod, at), at, since, seq)


def _is_evicted(pod: Pod) -> bool:
    condition = pod_condition(pod, "DisruptionTarget")
    return condition is not None and (condition.status, condition.reason) == ("True", _EVICTION)


def _first_evicted(history: History[Pod]) -> tuple[Version[Pod], Version[Pod]] | None:
    """The versions before and at the eviction; None if it was before the first."""
    before = None
    for version in history:
        if _is_evicted(version.object):
            return None if before is None else (before, version)
        before = version
    return None


def _evicted_by(case: Case, node: str, pod: Pod, t: float) -> str:
    """Author of an Event about the pod, or of the cordon that precedes a drain."""
    author = event_author(case.timeline, "Pod", pod.metadata.name, t, pod.metadata.namespace)
    if author:
        return author
    history = case.timeline.nodes.get(node)
    version = history.at(t) if history else None
    owner = field_owner(version.object, "unschedulable") if version else ""
    return "" if owner == FIELD_MANAGER else describe_manager(owner)


class _Boot(NamedTuple):
    """A boot that was seen at ``t``, and not before ``since``."""

    t: float
    since: float
    seq: int


def power_faults(case: Case, node: str) -> Iterator[ForeignFault]:
    """Boots and power-offs of one node."""
    yield from _power_offs(case, node)
    boots = list(_boots(case.timeline, node)) or list(_starts(case.timeline, node))
    unexplained = set(case.own.unexplained_boots(node, [boot.t for boot in boots]))
    for boot in boots:
        if boot.t in unexplained and not case.own.explains_everything(node, boot.t):
            by = event_author(case.timeline, "Node", node, boot.t)
            yield fault(node, ForeignKind.REBOOT, "was rebooted", by, boot.t, boot.since, boot.seq)


def _power_offs(case: Case, node: str) -> Iterator[ForeignFault]:
    earlier: list[float] = []
    was_off = {readings[0].seq for readings in believed_offs(case.timeline, node)}
    for before, after in pairwise(case.timeline.readings(node, PseudoFact.MACHINE)):
        if before.value != PowerState.ON or after.seq not in was_off:
            continue
        is_explained = case.own.explains_power_off(node, after.t, before.t, earlier)
        earlier.append(after.t)
        if not is_explained:
            yield fault(node, ForeignKind.POWER_OFF, "was powered off", "", after.t, before.t, before.seq, after.seq)


def _boots(timeline: Timeline, node: str) -> Iterator[_Boot]:
    """Boot IDs that are new, in the Node object or on the host. The Node object has an old one for a while."""
    seen: dict[str, float] = {}
    last = 0.0
    for t, boot_id, seq in sorted(_boot_ids(timeline, node)):
        if seen and boot_id not in seen:
            yield _Boot(t, last, seq)
        if boot_id not in seen or boot_id == list(seen)[-1]:
            last = t
        seen.setdefault(boot_id, t)


def _boot_ids(timeline: Timeline, node: str) -> Iterator[tuple[float, str, int]]:
    for version in timeline.nodes.get(node) or ():
        info = version.object.status.node_info if version.object.status else None
        if info and info.boot_id and not version.is_deleted:
            yield version.t, info.boot_id, version.seq
    for reading in timeline.readings(node, "boot-id"):
        yield reading.t, str(reading.value), reading.seq


def _starts(timeline: Timeline, node: str) -> Iterator[_Boot]:
    """Starts of PID 1, the only trace of a boot in a container. A clock that was set moves them, too."""
    readings = timeline.readings(node, "pid1-start")
    if not readings or any(entry.type == _SETS_CLOCK and entry.node == node for entry, _ in timeline.actions):
        return
    for before, after in pairwise(readings):
        is_later = is_number(before.value) and is_number(after.value) and after.value > before.value + SAME_BOOT_SECONDS
        if is_later and _was_down(timeline, node, before, after):
            yield _Boot(after.t, before.t, after.seq)


def _was_down(timeline: Timeline, node: str, before: Fact, after: Fact) -> bool:
    """Whether the host did not respond, or its kubelet started, between two readings."""
    if timeline.blind_windows_in([f"host@{node}"], before.t, after.t):
        return True
    return any(
        before.t <= entry.t <= after.t and event.reason == "Starting" and component(event) == "kubelet"
        for entry, event in timeline.events.about(node)
    )


def restart_faults(case: Case, begin: float | None) -> Iterator[ForeignFault]:
    """Restarts after ``begin``, of the first step, that no step on a machine of the control plane explains."""
    if begin is None:
        return
    found = [*_announced(case.timeline, begin), *_container_restarts(case.timeline, begin)]
    for at, since, seq in sorted(found):
        if not _is_explained(case.timeline, case.own, at):
            yield ForeignFault("", ForeignKind.CONTROLLER_RESTART, _RESTARTED, "unknown", at, since, (seq,))


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
    is_lease = about is not None and (about.kind, about.name) == ("Lease", CONTROLLER_MANAGER)
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
