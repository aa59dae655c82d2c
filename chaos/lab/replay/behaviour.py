"""How containers end, of a recording whose ``meta`` does not say: from Killing events and their exits. Pure.

The mean over the pods of an owner counts for those that were not seen to end.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import mean
from typing import Any

from chaos.lab.objects.accessors import Object, is_active, node_of, uid_of
from chaos.lab.replay.pod_lives import ends_of, pod_lives
from chaos.lab.replay.recording import Recording
from chaos.lab.replay.states import owner_of

INFERRED = "behaviourInferred"  # in ``meta``: the recording itself does not say
_KILLED = 137
_POLL = 0.5  # seconds; what the replay adds to stopsAfter of recorded containers
_SHUTDOWNS = ("poweroff", "reboot", "schedule-shutdown", "prepare-for-shutdown")
_AT_LEAST = 2.0  # seconds after the begin of a shutdown, in which containers that react to SIGTERM have ended


def inferred_behaviour(recording: Recording) -> dict[str, dict[str, Any]]:
    """Rules as in ``meta.behaviour``, by owner. ``preStop`` hooks that do not sleep are part of ``stopsAfter``."""
    delays: dict[str, list[float]] = defaultdict(list)
    codes: dict[str, int] = {}
    for life in pod_lives(recording).values():
        owner = owner_of(life.pod)
        if life.stop is not None:
            codes[owner] = life.stop[1]
            delays[owner].append(max(0.0, life.stop[0] - longest_sleep(life.pod)))
        elif ends := ends_of(life.pod):
            codes.setdefault(owner, max(int(end.get("exitCode") or 0) for end in ends))
    result: dict[str, dict[str, Any]] = {owner: {"ignoresSIGTERM": True} for owner in _outlasting(recording)}
    for owner, code in codes.items():
        if code == _KILLED:
            result[owner] = {"ignoresSIGTERM": True}
        else:
            result[owner] = {"exit": code, "stopsAfter": max(0.0, mean(delays[owner] or [_POLL]) - _POLL)}
    return result


def longest_sleep(pod: Object) -> float:
    """Seconds that the preStop hooks of the pod sleep."""
    hooks = [(item.get("lifecycle") or {}).get("preStop") or {} for item in pod["spec"]["containers"]]
    return max((float((hook.get("sleep") or {}).get("seconds") or 0) for hook in hooks), default=0.0)


def _outlasting(recording: Recording) -> set[str]:
    """Owners of pods that lived on after a shutdown of their node had begun, until the machine was off."""
    result = set()
    for shutdown in [item for item in recording.operations if item.action in _SHUTDOWNS]:
        begin, pods = shutdown.t, {}
        for item in recording.observations["pods"]:
            if item.t <= begin + _AT_LEAST:
                pods[uid_of(item.object)] = item.object
        result |= {owner_of(pod) for pod in pods.values() if node_of(pod) == shutdown.node and is_active(pod)}
    return result
