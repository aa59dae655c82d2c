"""Whether a kubelet held its inhibitor, as the recording shows: a defect of v1.36.2 that strikes in most tries.

Facts 2 and 18. It is read from ``systemd-inhibit --list``, or else from how the next shutdown went.
"""

from __future__ import annotations

from typing import Literal

from chaos.lab.objects.accessors import condition, name_of, node_of
from chaos.lab.replay.recording import Operation, Recording, to_epoch

_SHUTDOWNS = ("poweroff", "reboot", "schedule-shutdown")
_GRACEFUL_AFTER = 2.5  # seconds; without a lock the kubelet is stopped within 0.3
_MESSAGE = "node is shutting down"


def lost_after_cancel(recording: Recording) -> Literal["always", "never", "seeded"]:
    """Of the first cancellation whose outcome shows."""
    for deed in recording.operations:
        if deed.action == "prepare-for-shutdown" and not deed.params.get("active", "true" in deed.command):
            held = _has_lock_after(recording, deed)
            if held is not None:
                return "never" if held else "always"
    return "seeded"


def has_logind(recording: Recording, node: str) -> bool:
    """False if nothing held a lock at first and a shutdown was not heard of: the kubelet has no manager at work."""
    return (
        has_lock_initially(recording, node) is not False
        or not _shutdowns(recording, node)
        or _reported_shutdown(recording, node)
    )


def has_lock_initially(recording: Recording, node: str) -> bool | None:
    """None if nobody looked before the first action."""
    seen = [
        held for t, name, held in recording.inhibitor_samples if name == node and t <= recording.first_operation_time()
    ]
    return seen[-1] if seen else None


def _has_lock_after(recording: Recording, cancel: Operation) -> bool | None:
    """What was seen before anything else was done to the node, or how its next shutdown went."""
    later = [deed for deed in recording.operations if deed.t > cancel.t and deed.node == cancel.node]
    until = later[0].t if later else recording.end
    seen = [held for t, name, held in recording.inhibitor_samples if name == cancel.node and cancel.t < t <= until]
    if seen:
        return seen[-1]
    if later and later[0].action in _SHUTDOWNS:
        return _is_graceful(recording, later[0])
    return None


def _is_graceful(recording: Recording, shutdown: Operation) -> bool:
    """Whether the kubelet still ended pods of the node when a machine that waits for nobody is off."""
    for item in recording.observations["pods"]:
        target = condition(item.object, "DisruptionTarget") or {}
        late = item.t > shutdown.t + _GRACEFUL_AFTER and node_of(item.object) == shutdown.node
        if late and target.get("reason") == "TerminationByKubelet":
            since = to_epoch(target["lastTransitionTime"])
            if since >= shutdown.t + _GRACEFUL_AFTER - 1.0:  # whole seconds
                return True
    return False


def _shutdowns(recording: Recording, node: str) -> list[Operation]:
    return [deed for deed in recording.operations if deed.node == node and deed.action in _SHUTDOWNS]


def _reported_shutdown(recording: Recording, node: str) -> bool:
    return any(
        name_of(item.object) == node and _MESSAGE in (condition(item.object, "Ready") or {}).get("message", "")
        for item in recording.observations["nodes"]
    )
