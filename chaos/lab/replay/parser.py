"""Parse the entries of a recording, and infer the operations that no entry names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chaos.lab.replay.behaviour import inferred_behaviour
from chaos.lab.replay.external_writes import find_user_operations
from chaos.lab.replay.recording import NotARecordingError, Observation, Operation, Recording
from chaos.lab.replay.verbs import UNDO, verb_of
from chaos.lab.spec import SpecError, parse_duration

_INHIBITORS = ("inhibitor-locks", "inhibitors")  # the latter in recordings of 0.1.0
_CHANGES = ("LIST", "ADDED", "MODIFIED", "DELETED")
_START_OPERATIONS = ("power-on", "reboot", "hard-reboot", "kubelet-start", "kubelet-restart", "kubelet-kill")
_SETUP_LEAD = 1.0  # seconds from the state that is restored to the first action of a run
_RESTART_DURATION = 0.3  # seconds from a kubelet's restart to its event


def parse(entries: Iterable[dict[str, Any]]) -> Recording:
    """Parse entries, JSON objects {t, kind, type, object, node}. Raises NotARecordingError."""
    recording: Recording | None = None
    steps: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        try:
            if recording is None:
                recording = Recording(entry["t"], entry["t"], entry["object"] if entry["kind"] == "meta" else {})
            recording.end = entry["t"]
            _add_entry(recording, entry, steps)
        except (KeyError, TypeError, AttributeError) as error:
            raise NotARecordingError(f"line {number}: not an entry of a recording: {error!r}") from error
    if recording is None:
        raise NotARecordingError("the recording is empty")
    if not recording.initial_objects("nodes"):
        raise NotARecordingError("the recording does not start with a list of nodes")
    if not recording.meta.get("behaviour"):
        recording.meta = {**recording.meta, "behaviour": inferred_behaviour(recording)}
    if recording.meta.get("nodefall") and recording.operations:
        _skip_setup(recording)
    recording.operations += [*_implied_heals(recording), *find_user_operations(recording)]
    recording.operations += _implied_restarts(recording)
    recording.operations.sort(key=lambda item: item.t)
    return recording


def _skip_setup(recording: Recording) -> None:
    """Begin just before the first action: a run of nodefall applies its workload first, as slowly as images come."""
    start = min(item.t for item in recording.operations) - _SETUP_LEAD
    recording.start = max(recording.start, start)
    for plural, observations in recording.observations.items():
        last: dict[str, Observation] = {}
        for item in observations:
            if item.t <= start:
                last[str(item.object["metadata"].get("uid"))] = item
        first = [Observation(start, "LIST", item.object) for item in last.values() if item.type != "DELETED"]
        recording.observations[plural] = [*first, *(item for item in observations if item.t > start)]


def _add_entry(recording: Recording, entry: dict[str, Any], steps: dict[str, str]) -> None:
    kind, type_ = entry["kind"], entry["type"]
    if kind in recording.observations:
        if type_ in _CHANGES and "metadata" in entry["object"]:
            recording.observations[kind].append(Observation(entry["t"], type_, entry["object"]))
    elif kind == "action":
        _add_action(recording, entry, steps)
    elif kind == "host" and type_ == "configz":
        config = entry["object"].get("kubeletconfig", entry["object"])
        recording.configs.setdefault(entry["node"], config)
    elif kind == "host" and type_ in _INHIBITORS and isinstance(entry["object"], list):
        has_lock = any(lock.get("who") == "kubelet" for lock in entry["object"])
        recording.inhibitor_samples.append((entry["t"], entry["node"], has_lock))


def _add_action(recording: Recording, entry: dict[str, Any], steps: dict[str, str]) -> None:
    body, node = entry["object"], entry.get("node", "")
    params, command = body.get("params") or {}, body.get("command") or ""
    if body.get("phase") == "begin":
        verb = verb_of(entry["type"], params, steps)
        steps[str(body.get("step", ""))] = verb
        recording.operations.append(Operation(entry["t"], verb, node, params, command))
    elif body.get("phase") == "undone":
        verb = steps.get(str(body.get("step", "")), "")
        undo = UNDO.get(verb, "")
        actions = [item.action for item in recording.operations if item.node == node and item.action in (verb, undo)]
        if undo and actions[-1:] == [verb]:
            recording.operations.append(Operation(entry["t"], undo, node, {}))


def _implied_heals(recording: Recording) -> list[Operation]:
    """Ends of partitions with a duration that no entry reports."""
    result = []
    for item in recording.operations:
        if item.action != "partition" or not isinstance(item.params.get("duration"), str):
            continue
        later = [other for other in recording.operations if other.node == item.node and other.t > item.t]
        if any(other.action == "heal" for other in later):
            continue
        try:
            result.append(Operation(item.t + parse_duration(item.params["duration"]), "heal", item.node, {}))
        except SpecError as error:
            raise NotARecordingError(f"action partition: {error}") from error
    return result


def _implied_restarts(recording: Recording) -> list[Operation]:
    """Restarts of kubelets that no operation explains."""
    result = []
    for node in {item.object["metadata"]["name"] for item in recording.observations["nodes"]}:
        starts = recording.kubelet_starts(node)
        for before, at in zip([recording.start, *starts], starts, strict=False):
            earlier = [item for item in recording.operations if item.node == node and before <= item.t < at]
            if not any(item.action in _START_OPERATIONS for item in earlier):
                result.append(Operation(at - _RESTART_DURATION, "kubelet-restart", node, {}))
    return result
