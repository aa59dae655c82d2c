"""Settings of a recorded cluster that only what followed shows: the forced detach, shutdown managers and their locks.

Kubernetes v1.36.2 has a defect that usually loses the lock when a shutdown is cancelled (facts 2 and 18). Locks are
read from ``systemd-inhibit --list``, or else inferred from the next shutdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from chaos.lab.objects import (
    Object,
    claims_of,
    condition,
    condition_status,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from chaos.lab.recorded import build
from chaos.lab.recorded.implied import has_lock_initially
from chaos.lab.recorded.recording import Operation, Recording, to_epoch
from chaos.lab.snapshot.restored import control_plane
from chaos.lab.spec import LabSpec

_FORCED_DETACH = 390.0  # seconds; 6 min, and what the controller takes for it (facts 7)
_SIGNALLED = ("poweroff", "reboot", "schedule-shutdown")
_GRACEFUL_AFTER = 2.5  # seconds; without a lock the kubelet stops within 0.3 s
_MESSAGE = "node is shutting down"


def lab_spec(recording: Recording, start: float, seed: int = 1) -> LabSpec:
    """LabSpec with the nodes and settings of the recording, starting at epoch seconds ``start``. Raises ReplayError."""
    spec = build.lab_spec(recording, start, seed)
    is_disabled = {"disableForceDetachOnTimeout": disables_forced_detach(recording)}
    return msgspec.structs.replace(
        spec,
        nodes=[msgspec.structs.replace(node, logind=has_logind(recording, node.name)) for node in spec.nodes],
        controllers=control_plane(recording.meta, is_disabled),
        inhibitor_lost_after_cancel=lost_after_cancel(recording),
    )


def disables_forced_detach(recording: Recording) -> bool:
    """Whether a volume stayed attached to a node that was not Ready for longer than six minutes without its pod."""
    for attachment in recording.initial_objects("volumeattachments"):
        uid, seen = uid_of(attachment), recording.observations["volumeattachments"]
        versions = [item for item in seen if uid_of(item.object) == uid]
        end = next((item.t for item in versions if item.type == "DELETED" or is_deleting(item.object)), recording.end)
        gone = _last_use(recording, attachment, end)
        for lost, back in _outages(recording, attachment["spec"]["nodeName"]):
            if min(end, back) - max(gone, lost) > _FORCED_DETACH:
                return True
    return False


def _outages(recording: Recording, node: str) -> Iterator[tuple[float, float]]:
    """Begin and end of each time in which the node was not Ready."""
    lost: float | None = None
    for item in recording.observations["nodes"]:
        if name_of(item.object) != node:
            continue
        is_ready = condition_status(item.object, "Ready") == "True"
        if is_ready and lost is not None:
            yield lost, item.t
        lost = None if is_ready else (item.t if lost is None else lost)
    if lost is not None:
        yield lost, recording.end


def _last_use(recording: Recording, attachment: Object, end: float) -> float:
    """Time at which the last pod with the volume left the node; ``end`` if one still was there."""
    volume = attachment["spec"]["source"].get("persistentVolumeName", "")
    claims = {
        (namespace_of(item.object), name_of(item.object))
        for item in recording.observations["persistentvolumeclaims"]
        if (item.object["spec"] or {}).get("volumeName") == volume
    }
    ends: dict[str, float] = {}
    for item in recording.observations["pods"]:
        pod = item.object
        has_claim = any((namespace_of(pod), claim) in claims for claim in claims_of(pod))
        if has_claim and node_of(pod) == attachment["spec"]["nodeName"]:
            is_gone = item.type == "DELETED" or is_terminal(pod)
            ends[uid_of(pod)] = min(ends.get(uid_of(pod), end), item.t) if is_gone else end
    return max(ends.values(), default=end)


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


def _has_lock_after(recording: Recording, cancel: Operation) -> bool | None:
    """Last sample before the next operation on the node, else the outcome of its next shutdown."""
    later = [item for item in recording.operations if item.t > cancel.t and item.node == cancel.node]
    end = later[0].t if later else recording.end
    of_node = [(t, has_lock) for t, name, has_lock in recording.inhibitor_samples if name == cancel.node]
    samples = [has_lock for t, has_lock in of_node if cancel.t < t <= end]
    if samples:
        return samples[-1]
    if later and later[0].action in _SIGNALLED:
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
    return [item for item in recording.operations if item.node == node and item.action in _SIGNALLED]


def _reported_shutdown(recording: Recording, node: str) -> bool:
    return any(
        name_of(item.object) == node and _MESSAGE in (condition(item.object, "Ready") or {}).get("message", "")
        for item in recording.observations["nodes"]
    )
