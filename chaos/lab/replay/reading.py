"""From the lines of a recording to what the replay needs, with the deeds that no line names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chaos.lab.replay.recording import Deed, NotARecordingError, Recording, Seen
from chaos.lab.replay.users import users_deeds
from chaos.lab.replay.verbs import UNDO, verb_of
from chaos.lab.spec import SpecError, seconds

_CHANGES = ("LIST", "ADDED", "MODIFIED", "DELETED")
_STARTS = ("power-on", "reboot", "hard-reboot", "kubelet-start", "kubelet-restart", "kubelet-kill")
_TAKES = 0.3  # from a kubelet's restart to its event


def parse(lines: Iterable[dict[str, Any]]) -> Recording:
    """From the lines as JSON objects {t, kind, type, object, node}. Raises NotARecordingError."""
    made: Recording | None = None
    steps: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        try:
            if made is None:
                made = Recording(line["t"], line["t"], line["object"] if line["kind"] == "meta" else {})
            made.end = line["t"]
            _add(made, line, steps)
        except (KeyError, TypeError, AttributeError) as error:
            raise NotARecordingError(f"line {number} is not of a recording: {error!r}") from error
    if made is None:
        raise NotARecordingError("the recording is empty")
    if not made.first("nodes"):
        raise NotARecordingError("the recording has no list of nodes to begin with")
    made.deeds += [*_heals(made), *users_deeds(made)]
    made.deeds += _restarts(made)
    made.deeds.sort(key=lambda deed: deed.t)
    return made


def _add(made: Recording, line: dict[str, Any], steps: dict[str, str]) -> None:
    kind, type_ = line["kind"], line["type"]
    if kind in made.seen:
        if type_ in _CHANGES and "metadata" in line["object"]:
            made.seen[kind].append(Seen(line["t"], type_, line["object"]))
    elif kind == "action":
        _add_action(made, line, steps)
    elif kind == "host" and type_ == "configz":
        config = line["object"].get("kubeletconfig", line["object"])
        made.configs.setdefault(line["node"], config)
    elif kind == "host" and type_ == "inhibitors" and isinstance(line["object"], list):
        held = any(lock.get("who") == "kubelet" for lock in line["object"])
        made.locks.append((line["t"], line["node"], held))


def _add_action(made: Recording, line: dict[str, Any], steps: dict[str, str]) -> None:
    body, node = line["object"], line.get("node", "")
    params, command = body.get("params") or {}, body.get("command") or ""
    if body.get("phase") == "begin":
        verb = verb_of(line["type"], params, steps)
        steps[str(body.get("step", ""))] = verb
        made.deeds.append(Deed(line["t"], verb, node, params, command))
    elif body.get("phase") == "undone":
        begun = steps.get(str(body.get("step", "")), "")
        undo = UNDO.get(begun, "")
        done = [deed.action for deed in made.deeds if deed.node == node and deed.action in (begun, undo)]
        if undo and done[-1:] == [begun]:
            made.deeds.append(Deed(line["t"], undo, node, {}))


def _heals(made: Recording) -> list[Deed]:
    """Partitions that end by themselves, when nothing tells of it."""
    found = []
    for deed in made.deeds:
        later = [item.t for item in made.deeds if item.node == deed.node and item.action == "heal" and item.t > deed.t]
        if deed.action == "partition" and not later and isinstance(deed.params.get("duration"), str):
            try:
                found.append(Deed(deed.t + seconds(deed.params["duration"]), "heal", deed.node, {}))
            except SpecError as error:
                raise NotARecordingError(f"action partition: {error}") from error
    return found


def _restarts(made: Recording) -> list[Deed]:
    """Starts of a kubelet that no action explains: somebody restarted it."""
    found = []
    for node in {item.object["metadata"]["name"] for item in made.seen["nodes"]}:
        starts = made.starts(node)
        for before, at in zip([made.begin, *starts], starts, strict=False):
            done = [
                deed for deed in made.deeds if deed.node == node and before <= deed.t < at and deed.action in _STARTS
            ]
            if not done:
                found.append(Deed(at - _TAKES, "kubelet-restart", node, {}))
    return found
