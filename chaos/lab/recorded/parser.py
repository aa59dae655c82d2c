"""Parse the entries of a recording, and infer the operations that no entry names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chaos.lab.recorded.external_writes import UNDO, find_user_operations, verb_of
from chaos.lab.recorded.implied import implied_exits, implied_heals, implied_starts, inferred_requests
from chaos.lab.recorded.moments import at_their_moments
from chaos.lab.recorded.pod_lives import INFERRED, inferred_behaviour
from chaos.lab.recorded.recording import NotARecordingError, Observation, Operation, Recording, Requests
from chaos.lab.recorded.stalls import answers, find_stalls, late_times

_INHIBITORS = ("inhibitor-locks", "inhibitors")  # the latter in recordings of 0.1.0
_CHANGES = ("LIST", "ADDED", "MODIFIED", "DELETED")
_SETUP_LEAD = 1.0  # seconds from the state that is restored to the first action of a run


def parse(entries: Iterable[dict[str, Any]]) -> Recording:
    """Parse entries, JSON objects {t, kind, type, object, node}. Raises NotARecordingError, ReplayError."""
    recording: Recording | None = None
    steps: dict[str, str] = {}
    requests = Requests()
    for number, entry in enumerate(entries, 1):
        try:
            if recording is None:
                recording = Recording(entry["t"], entry["t"], entry["object"] if entry["kind"] == "meta" else {})
            recording.end = entry["t"]
            _add_entry(recording, entry, steps)
            if entry["kind"] == "action":
                requests.add(entry, recording.meta)
        except (KeyError, TypeError, AttributeError) as error:
            raise NotARecordingError(f"line {number}: not an entry of a recording: {error!r}") from error
    if recording is None:
        raise NotARecordingError("the recording is empty")
    if not recording.initial_objects("nodes"):
        raise NotARecordingError("the recording does not start with a list of nodes")
    _order_changes(recording, requests)
    if not recording.meta.get("behaviour"):
        recording.meta = {**recording.meta, "behaviour": inferred_behaviour(recording), INFERRED: True}
    recording.operations += [*implied_heals(recording), *implied_exits(recording), *find_user_operations(recording)]
    recording.operations += implied_starts(recording)
    recording.operations.sort(key=lambda item: item.t)
    recording.cpu_requests = inferred_requests(recording)
    return recording


def _order_changes(recording: Recording, requests: Requests) -> None:
    """Find stalls, then have changes at their moments.

    A run of nodefall begins just before its first action: it applies its workload first, as slowly as images come.
    """
    received, start = recording.observations, float("-inf")
    if recording.meta.get("nodefall") and recording.operations:
        start = min(item.t for item in recording.operations) - _SETUP_LEAD
        recording.start = max(recording.start, start)
    recording.observations = _since(received, start)
    recording.stalls = find_stalls(recording)
    recording.answers = answers(received["leases"])
    recording.observations = _since(at_their_moments(received, requests, late_times(recording)), start)


def _since(observations: dict[str, list[Observation]], start: float) -> dict[str, list[Observation]]:
    """Observations as they are for one who begins at ``start``, with a list."""
    return {plural: _list_at(items, start) for plural, items in observations.items()}


def _list_at(items: list[Observation], start: float) -> list[Observation]:
    last: dict[str, Observation] = {}
    for item in items:
        if item.t <= start:
            last[str(item.object["metadata"].get("uid"))] = item
    first = [Observation(start, "LIST", item.object) for item in last.values() if item.type != "DELETED"]
    return [*first, *(item for item in items if item.t > start)]


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
    elif body.get("phase") in ("undo", "undone"):
        _add_undo(recording, Operation(entry["t"], steps.get(str(body.get("step", "")), ""), node, {}))


def _add_undo(recording: Recording, step: Operation) -> None:
    """Add what takes back the step, when that begins; its proof, or a repetition, comes later."""
    undo = UNDO.get(step.action, "")
    earlier = [item for item in recording.operations if item.node == step.node and item.action in (step.action, undo)]
    if undo and earlier and not _is_undone(earlier[-1], undo):
        params = {"active": False} if undo == "prepare-for-shutdown" else {}
        recording.operations.append(Operation(step.t, undo, step.node, params))


def _is_undone(last: Operation, undo: str) -> bool:
    """Whether the last operation is the undo; of a signal, whether it announced no shutdown."""
    return not last.params.get("active") if undo == "prepare-for-shutdown" else last.action == undo
