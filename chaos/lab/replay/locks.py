"""Whether a kubelet held its inhibitor, as the recording shows: a defect of v1.36.2 that strikes in most tries.

Facts 2 and 18. It is read from ``systemd-inhibit --list``, or else from how the next shutdown went.
"""

from __future__ import annotations

from typing import Literal

from chaos.lab.objects import condition, name_of, node_of
from chaos.lab.replay.recording import Deed, Recording, epoch

_SHUTDOWNS = ("poweroff", "reboot", "schedule-shutdown")
_GONE = 2.5  # seconds; without a lock the kubelet is stopped within 0.3
_MESSAGE = "node is shutting down"


def lost_after_cancel(recording: Recording) -> Literal["always", "never", "seeded"]:
    """Of the first cancellation whose outcome shows."""
    for deed in recording.deeds:
        if deed.action == "prepare-for-shutdown" and not deed.params.get("active", "true" in deed.command):
            held = _held_after(recording, deed)
            if held is not None:
                return "never" if held else "always"
    return "seeded"


def has_logind(recording: Recording, node: str) -> bool:
    """False if nothing held a lock at first and a shutdown was not heard of: the kubelet has no manager at work."""
    return held_at_first(recording, node) is not False or not _shutdowns(recording, node) or _heard(recording, node)


def held_at_first(recording: Recording, node: str) -> bool | None:
    """None if nobody looked before the first action."""
    seen = [held for t, name, held in recording.locks if name == node and t <= recording.fault()]
    return seen[-1] if seen else None


def _held_after(recording: Recording, cancel: Deed) -> bool | None:
    """What was seen before anything else was done to the node, or how its next shutdown went."""
    later = [deed for deed in recording.deeds if deed.t > cancel.t and deed.node == cancel.node]
    until = later[0].t if later else recording.end
    seen = [held for t, name, held in recording.locks if name == cancel.node and cancel.t < t <= until]
    if seen:
        return seen[-1]
    if later and later[0].action in _SHUTDOWNS:
        return _is_graceful(recording, later[0])
    return None


def _is_graceful(recording: Recording, shutdown: Deed) -> bool:
    """Whether the kubelet still ended pods of the node when a machine that waits for nobody is off."""
    for item in recording.seen["pods"]:
        target = condition(item.object, "DisruptionTarget") or {}
        late = item.t > shutdown.t + _GONE and node_of(item.object) == shutdown.node
        if late and target.get("reason") == "TerminationByKubelet":
            since = epoch(target["lastTransitionTime"])
            if since >= shutdown.t + _GONE - 1.0:  # whole seconds
                return True
    return False


def _shutdowns(recording: Recording, node: str) -> list[Deed]:
    return [deed for deed in recording.deeds if deed.node == node and deed.action in _SHUTDOWNS]


def _heard(recording: Recording, node: str) -> bool:
    return any(
        name_of(item.object) == node and _MESSAGE in (condition(item.object, "Ready") or {}).get("message", "")
        for item in recording.seen["nodes"]
    )
