"""From the lines of a recording to what the replay needs, with the deeds that no line names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chaos.lab.replay.external_writes import find_user_operations
from chaos.lab.replay.recording import NotARecordingError, Observation, Operation, Recording
from chaos.lab.replay.verbs import UNDO, verb_of
from chaos.lab.spec import SpecError, parse_duration

_CHANGES = ("LIST", "ADDED", "MODIFIED", "DELETED")
_START_OPERATIONS = ("power-on", "reboot", "hard-reboot", "kubelet-start", "kubelet-restart", "kubelet-kill")
_RESTART_DURATION = 0.3  # from a kubelet's restart to its event


def parse(lines: Iterable[dict[str, Any]]) -> Recording:
    """From the lines as JSON objects {t, kind, type, object, node}. Raises NotARecordingError."""
    made: Recording | None = None
    steps: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        try:
            if made is None:
                made = Recording(line["t"], line["t"], line["object"] if line["kind"] == "meta" else {})
            made.end = line["t"]
            _add_entry(made, line, steps)
        except (KeyError, TypeError, AttributeError) as error:
            raise NotARecordingError(f"line {number} is not of a recording: {error!r}") from error
    if made is None:
        raise NotARecordingError("the recording is empty")
    if not made.initial_objects("nodes"):
        raise NotARecordingError("the recording has no list of nodes to begin with")
    made.operations += [*_implied_heals(made), *find_user_operations(made)]
    made.operations += _implied_restarts(made)
    made.operations.sort(key=lambda deed: deed.t)
    return made


def _add_entry(made: Recording, line: dict[str, Any], steps: dict[str, str]) -> None:
    kind, type_ = line["kind"], line["type"]
    if kind in made.observations:
        if type_ in _CHANGES and "metadata" in line["object"]:
            made.observations[kind].append(Observation(line["t"], type_, line["object"]))
    elif kind == "action":
        _add_action(made, line, steps)
    elif kind == "host" and type_ == "configz":
        config = line["object"].get("kubeletconfig", line["object"])
        made.configs.setdefault(line["node"], config)
    elif kind == "host" and type_ == "inhibitors" and isinstance(line["object"], list):
        held = any(lock.get("who") == "kubelet" for lock in line["object"])
        made.inhibitor_samples.append((line["t"], line["node"], held))


def _add_action(made: Recording, line: dict[str, Any], steps: dict[str, str]) -> None:
    body, node = line["object"], line.get("node", "")
    params, command = body.get("params") or {}, body.get("command") or ""
    if body.get("phase") == "begin":
        verb = verb_of(line["type"], params, steps)
        steps[str(body.get("step", ""))] = verb
        made.operations.append(Operation(line["t"], verb, node, params, command))
    elif body.get("phase") == "undone":
        begun = steps.get(str(body.get("step", "")), "")
        undo = UNDO.get(begun, "")
        done = [deed.action for deed in made.operations if deed.node == node and deed.action in (begun, undo)]
        if undo and done[-1:] == [begun]:
            made.operations.append(Operation(line["t"], undo, node, {}))


def _implied_heals(made: Recording) -> list[Operation]:
    """Partitions that end by themselves, when nothing tells of it."""
    found = []
    for deed in made.operations:
        later = [
            item.t for item in made.operations if item.node == deed.node and item.action == "heal" and item.t > deed.t
        ]
        if deed.action == "partition" and not later and isinstance(deed.params.get("duration"), str):
            try:
                found.append(Operation(deed.t + parse_duration(deed.params["duration"]), "heal", deed.node, {}))
            except SpecError as error:
                raise NotARecordingError(f"action partition: {error}") from error
    return found


def _implied_restarts(made: Recording) -> list[Operation]:
    """Starts of a kubelet that no action explains: somebody restarted it."""
    found = []
    for node in {item.object["metadata"]["name"] for item in made.observations["nodes"]}:
        starts = made.kubelet_starts(node)
        for before, at in zip([made.start, *starts], starts, strict=False):
            done = [
                deed
                for deed in made.operations
                if deed.node == node and before <= deed.t < at and deed.action in _START_OPERATIONS
            ]
            if not done:
                found.append(Operation(at - _RESTART_DURATION, "kubelet-restart", node, {}))
    return found
