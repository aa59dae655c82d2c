"""When recorded kubelets noticed that a resource was short, and which pods they evicted first. Pure.

How quickly a resource gets short, the phase of the eviction manager's rounds, and the use by each pod are not
mechanisms of Kubernetes, and only their effect is recorded. Facts 9.
Random choices of a recorded cluster, which the lab repeats.
The scheduler's choice among feasible nodes, the order in which nodes were tainted, the times of pod GC, and how many
pods a kubelet rejects before it is stopped. What a rule of Kubernetes decides is not taken from the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chaos.lab.apiserver.pods import untolerated
from chaos.lab.cluster import Cluster
from chaos.lab.objects import (
    NOT_READY,
    OUT_OF_SERVICE,
    UNREACHABLE,
    Object,
    condition,
    condition_status,
    controller_of,
    has_taint,
    is_deleting,
    matches_node,
    name_of,
    namespace_of,
    node_of,
    taints_of,
    uid_of,
)
from chaos.lab.recorded.recording import Observation, Operation, Recording, event_time
from chaos.lab.snapshot.restored import owner_of

CONDITIONS = {"memory": "MemoryPressure", "disk": "DiskPressure", "pid": "PIDPressure"}
_SHORT = 310.0  # seconds; a condition stays for 5 min, and a round is made every 10 s


def first_round(recording: Recording, operation: Operation, kind: str) -> float | None:
    """Time of the first round that noticed the pressure: of its first eviction, else of the condition."""
    reported = condition_time(recording, operation, kind)
    if reported is None:
        return None
    uids = _on_node(recording, operation.node)
    times = [event_time(item) for item in _evictions(recording) if item.object["involvedObject"].get("uid") in uids]
    return min([reported, *(t for t in times if operation.t <= t)])


def condition_time(recording: Recording, operation: Operation, kind: str) -> float | None:
    """Time at which the condition was first seen True after the operation; None if it was before, or never."""
    for item in recording.observations["nodes"]:
        if name_of(item.object) == operation.node and condition_status(item.object, CONDITIONS[kind]) == "True":
            return item.t if item.t > operation.t else None
    return None


def last_short(recording: Recording, operation: Operation, kind: str) -> float | None:
    """Time until which the resource was short, by the end of its condition; None if that was not recorded."""
    is_true = False
    for item in recording.observations["nodes"]:
        if name_of(item.object) != operation.node or item.t < operation.t:
            continue
        status = condition_status(item.object, CONDITIONS[kind])
        if is_true and status == "False":
            return item.t - _SHORT
        is_true = status == "True"
    return None


def eviction_ranks(recording: Recording) -> dict[str, float]:
    """Times at which pods were evicted by a kubelet, by uid; a pod that exits with 0 has no reason (facts 9)."""
    result: dict[str, float] = {}
    for item in _evictions(recording):
        result.setdefault(str(item.object["involvedObject"].get("uid", "")), event_time(item))
    for item in recording.observations["pods"]:
        if item.object["status"].get("reason") == "Evicted":
            result.setdefault(uid_of(item.object), item.t)
    return result


def _evictions(recording: Recording) -> list[Observation]:
    """Events of evictions by kubelets."""
    events = recording.observations["events"]
    return [item for item in events if item.type == "ADDED" and item.object.get("reason") == "Evicted"]


def _on_node(recording: Recording, node: str) -> set[str]:
    return {uid_of(item.object) for item in recording.observations["pods"] if node_of(item.object) == node}


_CACHE_AGE = 0.25  # seconds by which the scheduler's view of a node may be old
_BINDING_LEAD = 1.0  # seconds
_NEVER = float("inf")
_GC_PERIOD = 20.0055  # mean seconds between two runs of pod GC


class Bindings:
    """All bindings of a history: time, and the bound pod."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        self._initial_uids: set[str] = set()
        self._pending: dict[tuple[str, str], list[tuple[float, str]]] = {}
        self.all: list[tuple[float, Object]] = []
        unbound: set[str] = set()
        for item in observations:
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
        """Time of the next recorded binding of such a pod; infinity without one."""
        pending = self._pending.get(self._key(pod))
        return pending[0][0] if pending else float("inf")

    def pick(self, pod: Object, is_feasible: Callable[[str], bool]) -> str | None:
        """Node of the first recorded binding of such a pod to a feasible node; None without one."""
        pending = self._pending.get(self._key(pod), [])
        result = next((entry for entry in pending if is_feasible(entry[1])), None)
        if result is None:
            return None
        pending.remove(result)
        return result[1]

    def _key(self, pod: Object) -> tuple[str, str]:
        if uid_of(pod) in self._initial_uids:
            return "", uid_of(pod)
        is_identified = (controller_of(pod) or {}).get("kind") == "StatefulSet"
        return owner_of(pod), name_of(pod) if is_identified else ""


def misplaced_bindings(observations: dict[str, list[Observation]]) -> list[tuple[float, str]]:
    """Time and description of each binding to a node that is not feasible (facts 12)."""
    result = []
    for t, pod in Bindings(observations["pods"]).all:
        reasons = [_rejection(pod, node) for node in _node_versions(observations["nodes"], node_of(pod), t)]
        if all(reasons) and not is_deleting(pod):
            why = reasons[-1] if reasons else "does not exist"
            result.append((t, f"pod {name_of(pod)} was bound to {node_of(pod)}, which {why}"))
    return result


def _node_versions(observations: list[Observation], node: str, t: float) -> list[Object]:
    """Versions of the node that the scheduler may have seen at time ``t``."""
    versions = [item for item in observations if name_of(item.object) == node and item.t <= t]
    last = [item for item in versions if item.t <= t - _CACHE_AGE][-1:]
    newer = [item for item in versions if item.t > t - _CACHE_AGE]
    return [item.object for item in [*last, *newer] if item.type != "DELETED"]


def _rejection(pod: Object, node: Object) -> str:
    if untolerated(pod, taints_of(node), ("NoSchedule", "NoExecute")):
        return "has taints that the pod does not tolerate"
    return "" if matches_node(pod, node) else "does not match its node selector"


def apply_choices(cluster: Cluster, recording: Recording) -> None:
    """Make the controllers of a running lab repeat the recorded choices."""
    bindings = Bindings(recording.observations["pods"])
    if not has_constraints(recording):
        _follow_bindings(cluster, bindings)
    cluster.controllers.scheduler.order, cluster.controllers.scheduler.pick = bindings.next_binding_time, bindings.pick
    taint_times = _taint_times(recording)

    def select_next(nodes: list[str]) -> str:
        now = cluster.sim.now - _GC_PERIOD
        return min(nodes, key=lambda name: next((t for t in taint_times.get(name, []) if t > now), float("inf")))

    cluster.controllers.node_lifecycle.select_next = select_next
    ranks = eviction_ranks(recording)
    for machine in cluster.machines.values():
        machine.kubelet.eviction_rank = lambda pod: ranks.get(uid_of(pod), _NEVER)
    first_gc = _first_pod_gc(recording)
    if first_gc is not None:
        cluster.controllers.pod_gc.run_next_at(first_gc - _GC_PERIOD * int((first_gc - cluster.sim.now) / _GC_PERIOD))


def has_constraints(recording: Recording) -> bool:
    """Whether pods were recorded with what decides where they may run; runs of nodefall before 0.3 are without."""
    pods = recording.observations["pods"]
    return not recording.meta.get("nodefall") or any(item.object["spec"].get("schedulerName") for item in pods)


def _follow_bindings(cluster: Cluster, bindings: Bindings) -> None:
    """Schedule pods only when they were: bindings alone show their constraints."""
    scheduler, sim = cluster.controllers.scheduler, cluster.sim
    scheduler.may_schedule = lambda pod: bindings.next_binding_time(pod) - _BINDING_LEAD <= sim.now
    for t, _ in bindings.all:
        sim.at(max(sim.now, t - _BINDING_LEAD), scheduler.retry)


def _taint_times(recording: Recording) -> dict[str, list[float]]:
    """Times at which nodes got a NoExecute taint for their condition, by node."""
    result: dict[str, list[float]] = {}
    before: dict[str, bool] = {}
    for item in recording.observations["nodes"]:
        name = name_of(item.object)
        is_tainted = any(has_taint(item.object, key, "NoExecute") for key in (NOT_READY, UNREACHABLE))
        if is_tainted and not before.get(name, False):
            result.setdefault(name, []).append(item.t)
        before[name] = is_tainted
    return result


def eviction_times(recording: Recording, since: float) -> dict[tuple[str, str], float]:
    """Times at which pods were evicted through the API, by namespace and name."""
    result: dict[tuple[str, str], float] = {}
    for item in recording.observations["pods"]:
        target = condition(item.object, "DisruptionTarget") or {}
        if item.t >= since and target.get("reason") == "EvictionByEvictionAPI" and target.get("status") == "True":
            result.setdefault((namespace_of(item.object), name_of(item.object)), item.t)
    return result


def rejections_after(recording: Recording, shutdown: Operation) -> int | None:
    """Number of pods that the kubelet rejected between a shutdown and its stop; None if the machine stays up.

    Chance: the node's DaemonSets create pods until it is tainted, and the kubelet is stopped at any time (facts 18).
    """
    later = [item for item in recording.operations if item.node == shutdown.node and item.t > shutdown.t]
    if later and later[0].action == "cancel-shutdown":
        return None
    end = min([at for at in recording.kubelet_starts(shutdown.node) if at > shutdown.t], default=recording.end)
    pods = [item for item in recording.observations["pods"] if item.type != "LIST" and shutdown.t <= item.t < end]
    rejected = [item.object for item in pods if item.object["status"].get("reason") == "NodeShutdown"]
    return len({uid_of(pod) for pod in rejected if node_of(pod) == shutdown.node})


def _is_out_of_service(node: Object) -> bool:
    taints = {taint["key"] for taint in taints_of(node)}
    return OUT_OF_SERVICE in taints and condition_status(node, "Ready") == "Unknown"


def _first_pod_gc(recording: Recording) -> float | None:
    """Time of the first visible run of pod GC: its condition on a pod, or a Failed pod of an out-of-service node."""
    phases: dict[str, str] = {}
    for item in recording.observations["pods"]:
        uid, phase = uid_of(item.object), item.object["status"].get("phase", "")
        target = condition(item.object, "DisruptionTarget") or {}
        has_failed = item.type == "MODIFIED" and phase == "Failed" and phases.get(uid, phase) != phase
        if target.get("reason") == "DeletionByPodGC" and item.type != "LIST":
            return item.t
        node = recording.node_at(node_of(item.object), item.t)
        if has_failed and is_deleting(item.object) and node and _is_out_of_service(node):
            return item.t
        phases[uid] = phase
    return None
