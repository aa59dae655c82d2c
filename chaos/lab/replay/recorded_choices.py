"""What a recording shows of things that fell by chance: the lab's dice are made to fall likewise.

Which of the permitted nodes the scheduler chose, which of two waiting nodes was tainted first, when pod GC looked.
Nothing that a rule decides is taken from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chaos.lab.cluster import Cluster
from chaos.lab.controllers.scheduler.filters import matches_node
from chaos.lab.objects.accessors import (
    NOT_READY,
    OUT_OF_SERVICE,
    UNREACHABLE,
    Object,
    condition,
    condition_status,
    controller_of,
    has_taint,
    is_deleting,
    name_of,
    node_of,
    taints_of,
    uid_of,
    untolerated,
)
from chaos.lab.replay.recording import Observation, Recording
from chaos.lab.replay.states import owner_of

_CACHE_AGE = 0.25  # a scheduler can know a node as it was so long ago
_GC_PERIOD = 20.0055  # the middle of two loops of pod GC


class Bindings:
    """Every binding of a history: when, of which pod, to which node."""

    def __init__(self, seen: Iterable[Observation]) -> None:
        self._initial_uids: set[str] = set()
        self._pending: dict[tuple[str, str], list[tuple[float, str]]] = {}
        self.all: list[tuple[float, Object]] = []
        unbound: set[str] = set()
        for item in seen:
            uid = uid_of(item.object)
            if item.type == "LIST":
                self._initial_uids.add(uid)
            if not node_of(item.object):
                unbound.add(uid)
            elif uid in unbound:
                unbound.discard(uid)
                self.all.append((item.t, item.object))
                self._pending.setdefault(self._key(item.object), []).append((item.t, node_of(item.object)))

    def next_binding_time(self, pod: Object) -> float:
        """When a pod like this was bound next; infinity for never."""
        left = self._pending.get(self._key(pod))
        return left[0][0] if left else float("inf")

    def pick(self, pod: Object, may_go: Callable[[str], bool]) -> str | None:
        """The node of the first such binding that is permitted."""
        left = self._pending.get(self._key(pod), [])
        found = next((entry for entry in left if may_go(entry[1])), None)
        if found is None:
            return None
        left.remove(found)
        return found[1]

    def _key(self, pod: Object) -> tuple[str, str]:
        if uid_of(pod) in self._initial_uids:
            return "", uid_of(pod)
        named = (controller_of(pod) or {}).get("kind") == "StatefulSet"
        return owner_of(pod), name_of(pod) if named else ""


def misplaced_bindings(seen: dict[str, list[Observation]]) -> list[tuple[float, str]]:
    """When and why pods were bound to nodes that the scheduler may not choose (facts 12)."""
    found = []
    for t, pod in Bindings(seen["pods"]).all:
        reasons = [_rejection(pod, node) for node in _node_versions(seen["nodes"], node_of(pod), t)]
        if all(reasons) and not is_deleting(pod):
            why = reasons[-1] if reasons else "does not exist"
            found.append((t, f"pod {name_of(pod)} was bound to {node_of(pod)}, which {why}"))
    return found


def _node_versions(seen: list[Observation], node: str, t: float) -> list[Object]:
    """The node as it was just before, and as it became since then."""
    mine = [item for item in seen if name_of(item.object) == node and item.t <= t]
    last = [item for item in mine if item.t <= t - _CACHE_AGE][-1:]
    return [
        item.object for item in [*last, *[item for item in mine if item.t > t - _CACHE_AGE]] if item.type != "DELETED"
    ]


def _rejection(pod: Object, node: Object) -> str:
    if untolerated(pod, taints_of(node), ("NoSchedule", "NoExecute")):
        return "has taints that it does not tolerate"
    return "" if matches_node(pod, node) else "is not one that it selects"


def apply_choices(cluster: Cluster, recording: Recording) -> None:
    """Make the dice of a lab that has started fall as they did."""
    bindings = Bindings(recording.observations["pods"])
    cluster.controllers.scheduler.order, cluster.controllers.scheduler.pick = bindings.next_binding_time, bindings.pick
    tainted = _taint_times(recording)

    def next_of(waiting: list[str]) -> str:
        now = cluster.sim.now - _GC_PERIOD
        return min(waiting, key=lambda name: next((t for t in tainted.get(name, []) if t > now), float("inf")))

    cluster.controllers.node_lifecycle.select_next = next_of
    seen = _first_pod_gc(recording)
    if seen is not None:
        cluster.controllers.pod_gc.run_next_at(seen - _GC_PERIOD * int((seen - cluster.sim.now) / _GC_PERIOD))


def _taint_times(recording: Recording) -> dict[str, list[float]]:
    """By node: when it got a NoExecute taint for its condition."""
    found: dict[str, list[float]] = {}
    before: dict[str, bool] = {}
    for item in recording.observations["nodes"]:
        name = name_of(item.object)
        has = any(has_taint(item.object, key, "NoExecute") for key in (NOT_READY, UNREACHABLE))
        if has and not before.get(name, False):
            found.setdefault(name, []).append(item.t)
        before[name] = has
    return found


def _is_out_of_service(node: Object) -> bool:
    taints = {taint["key"] for taint in taints_of(node)}
    return OUT_OF_SERVICE in taints and condition_status(node, "Ready") == "Unknown"


def _first_pod_gc(recording: Recording) -> float | None:
    """When pod GC was first seen to work: its condition, or a pod of a node out of service turned Failed."""
    phases: dict[str, str] = {}
    for item in recording.observations["pods"]:
        uid, phase = uid_of(item.object), item.object["status"].get("phase", "")
        target = condition(item.object, "DisruptionTarget") or {}
        turned = item.type == "MODIFIED" and phase == "Failed" and phases.get(uid, phase) != phase
        if target.get("reason") == "DeletionByPodGC" and item.type != "LIST":
            return item.t
        node = recording.node_at(node_of(item.object), item.t)
        if turned and is_deleting(item.object) and node and _is_out_of_service(node):
            return item.t
        phases[uid] = phase
    return None
