"""When recorded controllers wrote: what shows that they worked in a stall, one request at a time. Pure."""

from __future__ import annotations

from chaos.lab.objects.accessors import Object, condition, controller_of, is_deleting, uid_of
from chaos.lab.replay.moments import changes
from chaos.lab.replay.recording import Recording

_REACTION = 0.05  # seconds; a controller writes after what it reacts to, which may have the same time
_USERS = ("user-delete", "user-force-delete", "user-evict")


def controller_writes(recording: Recording) -> list[float]:
    """Times at which controllers of workloads created or deleted a pod, in order."""
    operations = [item for item in recording.operations if item.action in _USERS and item.params["plural"] == "pods"]
    by_users = {uid_of(item.params["object"]) for item in operations}
    return sorted(
        {
            item.t + _REACTION
            for item, before in changes(recording.observations["pods"])
            if item.type not in ("LIST", "DELETED")
            and controller_of(item.object) is not None
            and _is_write(item.object, before)
            and not (before is not None and uid_of(item.object) in by_users)
        }
    )


def _is_write(pod: Object, before: Object | None) -> bool:
    """Whether a controller of a workload made this change: a new pod, or a deletion without a reason."""
    if before is None:
        return True
    target = condition(pod, "DisruptionTarget") or {}
    return is_deleting(pod) and not is_deleting(before) and target.get("status") != "True"
