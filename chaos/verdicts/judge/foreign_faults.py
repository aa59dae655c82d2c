"""Foreign faults: changes of nodes that no step, no undo and no controller of Kubernetes explains.

A machine that others cordon, drain, delete, upgrade or take down during a run makes verdicts inconclusive
(docs/assertions.md). Derived from the timeline alone, so that a run, its recording and a replay agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from chaos.core.assertion import Memo
from chaos.core.kube import Pod, pod_condition
from chaos.core.labels import FIELD_MANAGER
from chaos.core.logs import EntryLog
from chaos.core.recording import ADDED, ActionPhase
from chaos.core.registry import PluginRegistry
from chaos.core.result import ForeignFault
from chaos.core.timeline import History, Timeline, Version
from chaos.verdicts.judge.controller_restarts import restart_faults
from chaos.verdicts.judge.foreign_case import Case, ForeignKind, fault
from chaos.verdicts.judge.foreign_node import StateChanges, node_faults
from chaos.verdicts.judge.foreign_power import power_faults
from chaos.verdicts.judge.own_changes import NodeChange, OwnChanges
from chaos.verdicts.judge.pods import node_of
from chaos.verdicts.judge.writers import describe_manager, event_author, field_owner

_EVICTION = "EvictionByEvictionAPI"  # reason of DisruptionTarget


def foreign_faults(
    timeline: Timeline,
    registry: PluginRegistry,
    targets: Collection[str],
    namespace: str,
    memo: Memo | None = None,
) -> tuple[ForeignFault, ...]:
    """All in the order of their observation, each once per node.

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
    """Whether a Node, first observed in entry ``seq``, did not join during the run: others set up the ones that do.

    ``begin``: of the first step.
    """
    return entries.type(seq) != ADDED and (begin is None or entries.time(seq) <= begin)


def _evictions(case: Case, targets: Collection[str], namespace: str) -> Iterator[ForeignFault]:
    """One for each node, from its first pod on."""
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
