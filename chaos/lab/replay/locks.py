"""Inhibitor locks of the recorded kubelets. Kubernetes v1.36.2 has a defect that usually loses them.

Facts 2 and 18. Read from ``systemd-inhibit --list``, or else inferred from the next shutdown.
"""

from __future__ import annotations

from typing import Literal

from chaos.lab.objects.accessors import condition, name_of, node_of
from chaos.lab.replay.recording import Operation, Recording, to_epoch

_SHUTDOWNS = ("poweroff", "reboot", "schedule-shutdown")
_GRACEFUL_AFTER = 2.5  # seconds; without a lock the kubelet stops within 0.3 s
_MESSAGE = "node is shutting down"


def lost_after_cancel(recording: Recording) -> Literal["always", "never", "seeded"]:
    """Outcome of the first cancelled shutdown that shows one, for those that do not."""
    for item in recording.operations:
        lost = is_lost_after(recording, item)
        if lost is not None:
            return "always" if lost else "never"
    return "seeded"


def is_lost_after(recording: Recording, operation: Operation) -> bool | None:
    """Whether the kubelet had lost its lock after this operation; None if that is not a cancellation, or not seen."""
    params, command = operation.params, operation.command
    if operation.action != "prepare-for-shutdown" or params.get("active", "true" in command):
        return None
    has_lock = _has_lock_after(recording, operation)
    return None if has_lock is None else not has_lock


def has_logind(recording: Recording, node: str) -> bool:
    """False without an initial lock and without a report of a shutdown: the kubelet's shutdown manager is off."""
    if has_lock_initially(recording, node) is not False or not _shutdowns(recording, node):
        return True
    return _reported_shutdown(recording, node)


def has_lock_initially(recording: Recording, node: str) -> bool | None:
    """Whether the kubelet held a lock before the first operation; None without a sample."""
    end = recording.first_operation_time()
    samples = [has_lock for t, name, has_lock in recording.inhibitor_samples if name == node and t <= end]
    return samples[-1] if samples else None


def _has_lock_after(recording: Recording, cancel: Operation) -> bool | None:
    """Last sample before the next operation on the node, else the outcome of its next shutdown."""
    later = [item for item in recording.operations if item.t > cancel.t and item.node == cancel.node]
    end = later[0].t if later else recording.end
    of_node = [(t, has_lock) for t, name, has_lock in recording.inhibitor_samples if name == cancel.node]
    samples = [has_lock for t, has_lock in of_node if cancel.t < t <= end]
    if samples:
        return samples[-1]
    if later and later[0].action in _SHUTDOWNS:
        return _is_graceful(recording, later[0])
    return None


def _is_graceful(recording: Recording, shutdown: Operation) -> bool:
    """Whether the kubelet still ended pods at a time when a machine without lock is off."""
    for item in recording.observations["pods"]:
        target = condition(item.object, "DisruptionTarget") or {}
        late = item.t > shutdown.t + _GRACEFUL_AFTER and node_of(item.object) == shutdown.node
        if late and target.get("reason") == "TerminationByKubelet":
            since = to_epoch(target["lastTransitionTime"])
            if since >= shutdown.t + _GRACEFUL_AFTER - 1.0:  # lastTransitionTime has whole seconds
                return True
    return False


def _shutdowns(recording: Recording, node: str) -> list[Operation]:
    return [item for item in recording.operations if item.node == node and item.action in _SHUTDOWNS]


def _reported_shutdown(recording: Recording, node: str) -> bool:
    return any(
        name_of(item.object) == node and _MESSAGE in (condition(item.object, "Ready") or {}).get("message", "")
        for item in recording.observations["nodes"]
    )
