"""When recorded kubelets noticed that a resource was short, and which pods they evicted first. Pure.

How quickly a resource gets short, the phase of the eviction manager's rounds, and the use by each pod are not
mechanisms of Kubernetes, and only their effect is recorded. Facts 9.
"""

from __future__ import annotations

from chaos.lab.objects.accessors import condition_status, name_of, node_of, uid_of
from chaos.lab.replay.recording import Observation, Operation, Recording, event_time

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
