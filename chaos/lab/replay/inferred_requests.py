"""CPU requests of pods that were recorded without, such that the kubelet preempts those that it did. Facts 9. Pure.

Older recordings of nodefall have no requests; which pods a critical pod displaced shows how large they were together.
"""

from __future__ import annotations

from chaos.lab.objects.accessors import Object, condition, node_of, parse_quantity, uid_of
from chaos.lab.replay.recording import Observation, Recording

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
