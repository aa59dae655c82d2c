"""How containers end, of a recording whose ``meta`` does not say: from Killing events and their exits. Pure.

Both times have whole seconds, so the mean over the pods of an owner counts.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import mean
from typing import Any

from chaos.lab.objects.accessors import Object, uid_of
from chaos.lab.replay.recording import Recording, to_epoch
from chaos.lab.replay.states import owner_of

_KILLED = 137
_POLL = 0.5  # seconds; what the replay adds to stopsAfter of recorded containers


def inferred_behaviour(recording: Recording) -> dict[str, dict[str, Any]]:
    """Rules as in ``meta.behaviour``, by owner."""
    begun = _kill_times(recording)
    delays: dict[str, list[float]] = defaultdict(list)
    codes: dict[str, int] = {}
    last = {uid_of(item.object): item.object for item in recording.observations["pods"] if _ends(item.object)}
    for uid, pod in last.items():
        owner = owner_of(pod)
        for ended in _ends(pod):
            codes[owner] = int(ended.get("exitCode") or 0)
            if uid in begun and ended.get("finishedAt"):
                delays[owner].append(max(0.0, to_epoch(ended["finishedAt"]) - begun[uid]))
    result: dict[str, dict[str, Any]] = {}
    for owner, code in codes.items():
        if code == _KILLED:
            result[owner] = {"ignoresSIGTERM": True}
        else:
            result[owner] = {"exit": code, "stopsAfter": max(0.0, mean(delays[owner] or [_POLL]) - _POLL)}
    return result


def _kill_times(recording: Recording) -> dict[str, float]:
    """First Killing event of each pod, by UID."""
    result: dict[str, float] = {}
    for item in recording.observations["events"]:
        about, at = item.object.get("involvedObject") or {}, item.object.get("firstTimestamp")
        if item.object.get("reason") == "Killing" and about.get("kind") == "Pod" and at:
            result.setdefault(str(about.get("uid", "")), to_epoch(at))
    return result


def _ends(pod: Object) -> list[Object]:
    """Ends of the pod's containers, but not by a loss of power (255, Unknown)."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ended = [(item.get("state") or {}).get("terminated") for item in statuses]
    return [item for item in ended if item and item.get("reason") not in ("Unknown", "ContainerStatusUnknown")]
