"""CPU requests of pods that were recorded without, such that the kubelet preempts those that it did. Facts 9. Pure.

Older recordings of nodefall have no requests; which pods a critical pod displaced shows how large they were together.
Operations that no entry names: ends of partitions, boots, and restarts of kubelets. Pure.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from chaos.lab.objects import Object, condition, name_of, namespace_of, node_of, parse_quantity, uid_of
from chaos.lab.recorded.pod_lives import PodLife, own_exits, pod_lives
from chaos.lab.recorded.recording import NotARecordingError, Observation, Operation, Recording
from chaos.lab.spec import SpecError, parse_duration

_PREEMPTED = "Pod was preempted by Kubelet to accommodate a critical pod."
_CRITICAL = 2_000_000_000  # scheduling.SystemCriticalPriority


def inferred_requests(recording: Recording) -> dict[str, str]:
    """Requested cpu by the uid of a pod; empty for a recording with requests."""
    pods = recording.observations["pods"]
    if any(container.get("resources") for item in pods for container in item.object["spec"]["containers"]):
        return {}
    victims: dict[str, Observation] = {}
    for item in pods:
        if (condition(item.object, "DisruptionTarget") or {}).get("message") == _PREEMPTED:
            victims.setdefault(uid_of(item.object), item)
    result: dict[str, str] = {}
    for node in {node_of(item.object) for item in victims.values()}:
        displaced = {uid: item for uid, item in victims.items() if node_of(item.object) == node}
        critical = _last_critical(pods, node, min(item.t for item in displaced.values()))
        total = _allocatable(recording, node)
        if critical is not None and total:
            share = -(-total // len(displaced))
            result |= dict.fromkeys(displaced, f"{share}m") | {uid_of(critical): f"{total}m"}
    return result


def _last_critical(pods: list[Observation], node: str, t: float) -> Object | None:
    """Critical pod that was bound to the node last before ``t``."""
    new = [item.object for item in pods if item.type == "ADDED" and item.t <= t and node_of(item.object) == node]
    critical = [pod for pod in new if (pod["spec"].get("priority") or 0) >= _CRITICAL]
    return critical[-1] if critical else None


def _allocatable(recording: Recording, node: str) -> int:
    """Milli-CPUs of a node; 0 if unknown."""
    for obj in recording.initial_objects("nodes"):
        if obj["metadata"]["name"] == node:
            return int(parse_quantity((obj["status"].get("allocatable") or {}).get("cpu", "0")) * 1000)
    return 0


_START_OPERATIONS = ("power-on", "reboot", "hard-reboot", "kubelet-start", "kubelet-restart", "kubelet-kill")
_OFF_OPERATIONS = ("poweroff", "power-cut")
_SHUTDOWNS = ("poweroff", "reboot")
_RESTART_DURATION = 0.3  # seconds from a kubelet's restart to its event
_NEW_LEADER = " became leader"
_ELECTION = 60.0  # seconds in which a restarted controller manager becomes the leader
_RENEWAL_GAP = 15.0  # seconds; a kubelet that runs renews its Lease every 10 s (facts 5.1)


def implied_heals(recording: Recording) -> list[Operation]:
    """Ends of partitions with a duration that no entry reports. Raises NotARecordingError."""
    result = []
    for item in recording.operations:
        if item.action != "partition" or not isinstance(item.params.get("duration"), str):
            continue
        later = [other for other in recording.operations if other.node == item.node and other.t > item.t]
        if any(other.action == "heal" for other in later):
            continue
        try:
            result.append(Operation(item.t + parse_duration(item.params["duration"]), "heal", item.node, {}))
        except SpecError as error:
            raise NotARecordingError(f"action partition: {error}") from error
    return result


def implied_starts(recording: Recording) -> list[Operation]:
    """Boots and restarts of kubelets that no operation explains, as by a timer that powers the machine on."""
    result = []
    for node in {item.object["metadata"]["name"] for item in recording.observations["nodes"]}:
        starts = recording.kubelet_starts(node)
        for before, at in zip([recording.start, *starts], starts, strict=False):
            earlier = [item for item in recording.operations if item.node == node and before <= item.t < at]
            is_off = _is_off(recording, node, before)
            explained = [item for item in earlier if is_off or item.action != "power-on"]
            if not any(item.action in _START_OPERATIONS for item in explained):
                action = "power-on" if _is_off(recording, node, at) else "kubelet-restart"
                is_inferred = action == "kubelet-restart"  # a timer powers machines on
                result.append(Operation(at - _RESTART_DURATION, action, node, {}, is_inferred=is_inferred))
    return result


def implied_exits(recording: Recording) -> list[Operation]:
    """Ends of containers of the first pods by themselves, and new leaders of the controllers (facts 5.6)."""
    lives = [life for life in pod_lives(recording).values() if life.is_initial]
    result = [
        Operation(t, "container-exit", node_of(life.pod), {**_pod(life), "code": code}, is_inferred=True)
        for life in lives
        for t, code in own_exits(life)
    ]
    result += [
        Operation(t, "container-readiness", node_of(life.pod), {**_pod(life), "ready": ready}, is_inferred=True)
        for life in lives
        for run in life.runs
        for t, ready in run.readiness
    ]
    restarts = [item.t for item in recording.operations if item.action == "controller-manager-restart"]
    for item in recording.observations["events"]:
        about = item.object.get("involvedObject") or {}
        is_new_leader = item.type == "ADDED" and (item.object.get("message") or "").endswith(_NEW_LEADER)
        is_known = any(0 <= item.t - t <= _ELECTION for t in restarts)
        if is_new_leader and about.get("name") == "kube-controller-manager" and not is_known:
            result.append(Operation(item.t, "controller-manager-restart", "", {}, is_inferred=True))
    return result


def _pod(life: PodLife) -> dict[str, Any]:
    return {"pod": (namespace_of(life.pod), name_of(life.pod))}


def is_cancelled(recording: Recording, shutdown: Operation) -> bool:
    """Whether a cancellation kept the machine up: its kubelet renewed its Lease until its next start."""
    if shutdown.action not in _SHUTDOWNS:
        return False
    later = [item for item in recording.operations if item.node == shutdown.node and item.t > shutdown.t]
    if not later or later[0].action != "cancel-shutdown":
        return False
    following = [at for at in recording.kubelet_starts(shutdown.node) if at > shutdown.t]
    end = min(following, default=recording.end)
    renewed = [at for at in recording.renewals(shutdown.node) if shutdown.t - _RENEWAL_GAP <= at < end]
    return all(after - before <= _RENEWAL_GAP for before, after in pairwise([*renewed, end]))


def _is_off(recording: Recording, node: str, at: float) -> bool:
    power = (*_OFF_OPERATIONS, *_START_OPERATIONS)
    earlier = [item for item in recording.operations if item.node == node and item.t < at and item.action in power]
    return bool(earlier) and earlier[-1].action in _OFF_OPERATIONS and not is_cancelled(recording, earlier[-1])


def has_lock_initially(recording: Recording, node: str) -> bool | None:
    """Whether the kubelet held a lock before the first operation; None without a sample."""
    end = recording.first_operation_time()
    samples = [has_lock for t, name, has_lock in recording.inhibitor_samples if name == node and t <= end]
    return samples[-1] if samples else None
