"""Measures of the pods that existed at the fault, and of their replacements. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.core.history import History
from chaos.core.kube import Pod, controller_of, is_finished, phase, pod_condition
from chaos.core.timeline import Timeline
from chaos.verdicts.outcome.measure import Kind, Measure, Names, target_node

CREATED, SCHEDULED, READY, UNREADY = "created", "scheduled", "Ready", "not Ready"
DELETING, REMOVED, UNSCHEDULABLE = "deleting", "removed", "no room"
_BRIEF = 12.0  # seconds; a status sync of a kubelet and a pass of the node lifecycle controller
_RANKS = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)


def pod_measures(timeline: Timeline, start: float, names: Names) -> Iterator[tuple[Measure, float]]:
    """Measures of each pod that changed after ``start``, and times since the epoch.

    Of an owner's pods the time at which the first, the second, ... came into a state: ranks 1 to 5, then 10, 20, 50 and
    so on.
    """
    groups: dict[tuple[Kind, str, str], list[float]] = defaultdict(list)
    for history in timeline.pods.values():
        if history.last.t <= start:
            continue
        before = history.at(start)
        if before is not None and (before.is_deleted or is_finished(before.object)):
            continue
        kind = Kind.REPLACEMENT if before is None else Kind.POD
        subject = _subject(history, kind, names)
        for what, t in _states(history, start).items():
            groups[kind, subject, what].append(t)
    for (kind, subject, what), times in groups.items():
        for rank, t in enumerate(sorted(times), 1):
            if rank in _RANKS:
                yield Measure(kind, f"{rank} of {subject}", what), t


def _subject(history: History[Pod], kind: Kind, names: Names) -> str:
    """``OWNER [on NODE]``: the node of pods that existed, and of those that a DaemonSet creates."""
    pod = history.last.object
    controller, node = controller_of(pod), target_node(pod)
    has_place = kind is Kind.POD or (controller is not None and controller.kind == "DaemonSet")
    return names.owner(pod) + (f" on {names.node(node)}" if node and has_place else "")


def _states(history: History[Pod], start: float) -> dict[str, float]:
    """The states that the pod came into after ``start``, each with its first time."""
    before = history.at(start)
    known = set(_state(before.object, is_deleted=before.is_deleted)) if before else set()
    if before:
        known |= {CREATED}
    found: dict[str, float] = {}
    for version in history.after(start):
        for what in [CREATED, *_state(version.object, is_deleted=version.is_deleted)]:
            if what not in known:
                known.add(what)
                found[what] = version.t
        if READY in known and UNREADY not in known and not _is_ready(version.object) and not version.is_deleted:
            known.add(UNREADY)
            found[UNREADY] = version.t
    if (waiting := _without_room(history, start)) is not None:
        found[UNSCHEDULABLE] = waiting
    return found


def _without_room(history: History[Pod], start: float) -> float | None:
    """When the scheduler first found no node for the pod, if that lasted. Taints of a node may be removed a moment
    later.
    """
    since: float | None = None
    for version in history.after(start):
        scheduled = pod_condition(version.object, "PodScheduled")
        has_node = version.is_deleted or bool(version.object.spec and version.object.spec.node_name)
        if has_node:
            return since if since is not None and version.t - since > _BRIEF else None
        if since is None and scheduled and scheduled.status == "False" and scheduled.reason == "Unschedulable":
            since = version.t
    return since


def _state(pod: Pod, *, is_deleted: bool) -> Iterator[str]:
    spec, target = pod.spec, pod_condition(pod, "DisruptionTarget")
    if spec and spec.node_name:
        yield SCHEDULED
    if _is_ready(pod):
        yield READY
    if target and target.status == "True":
        yield f"disrupted by {target.reason}"
    if is_finished(pod):
        reason = pod.status.reason if pod.status else None
        yield f"{phase(pod)} ({reason})" if reason else phase(pod)
    if is_deleted or pod.metadata.deletion_timestamp:
        yield DELETING
    if is_deleted:
        yield REMOVED


def _is_ready(pod: Pod) -> bool:
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True"
