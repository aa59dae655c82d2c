"""Volumes of a recording: restored in the lab, and their states. Facts 7."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects.accessors import (
    Object,
    claims_of,
    condition_status,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from chaos.lab.replay.recording import Observation, Recording
from chaos.lab.replay.states import AttachmentState, StateHistory, VolumeState

VOLUME_KINDS = ("persistentvolumes", "persistentvolumeclaims", "volumeattachments")
_FORCED_DETACH = 390.0  # seconds; 6 min, and what the controller takes for it (facts 7)
_STATUS_FIELDS = ("volumesAttached", "volumesInUse")


def load_volumes(cluster: Cluster, recording: Recording) -> None:
    """Create the initial volumes, claims and attachments; call before their pods and owners are created."""
    for plural in VOLUME_KINDS:
        for obj in recording.initial_objects(plural):
            new: Object = clone(obj)
            for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
                new["metadata"].pop(key, None)
            cluster.store.create(plural, new)
    for node in recording.initial_objects("nodes"):
        status = {key: clone(node["status"][key]) for key in _STATUS_FIELDS if node["status"].get(key)}
        cluster.store.patch("nodes", "", name_of(node), partial(_set_status, status))


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


def volume_histories(observations: dict[str, list[Observation]]) -> dict[str, StateHistory]:
    """Histories of volumes, claims and attachments; volumes by claim, as the names of provisioned ones are random."""
    histories: dict[str, StateHistory] = {}
    claims = {
        name_of(item.object): _claim_of(item.object)
        for item in observations.get("persistentvolumes", [])
        if item.object["spec"].get("claimRef")
    }
    for item, key, node, volume, state in _states(observations, claims):
        history = histories.setdefault(key, StateHistory(key, key, node, key, volume))
        history.removed_at = item.t if item.type == "DELETED" else None
        if item.type != "DELETED":
            history.add(item.t, state)
    return {key: history for key, history in histories.items() if history.transitions}


def _states(
    observations: dict[str, list[Observation]], claims: dict[str, str]
) -> Iterator[tuple[Observation, str, str, str, VolumeState | AttachmentState]]:
    """Each observation with its history's key, the node, the volume's name or claim, and the state."""
    for item in observations.get("persistentvolumes", []):
        name = claims.get(name_of(item.object), name_of(item.object))
        phase = (item.object.get("status") or {}).get("phase", "")
        yield item, f"volume of {name}", "", name, VolumeState(phase)
    for item in observations.get("persistentvolumeclaims", []):
        name = f"{namespace_of(item.object)}/{name_of(item.object)}"
        phase = (item.object.get("status") or {}).get("phase", "")
        yield item, f"claim {name}", "", name, VolumeState(phase)
    for item in observations.get("volumeattachments", []):
        spec, status = item.object["spec"], item.object.get("status") or {}
        volume = spec["source"].get("persistentVolumeName", "")
        name, node = claims.get(volume, volume), spec["nodeName"]
        state = AttachmentState(bool(status.get("attached")), is_deleting(item.object))
        yield item, f"attachment of {name} to {node}", node, name, state


def _set_status(status: Object, node: Object) -> None:
    node["status"].update(status)


def _claim_of(volume: Object) -> str:
    reference = volume["spec"]["claimRef"]
    return f"{reference['namespace']}/{reference['name']}"
