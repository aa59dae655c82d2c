"""A recording as the replay needs it: what was there at first, what changed, what was done."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

from chaos.lab.objects import Object, condition, name_of

_PLURALS = (
    "priorityclasses", "poddisruptionbudgets", "deployments", "statefulsets", "daemonsets", "replicasets",
    "nodes", "pods", "leases", "events",
)  # fmt: skip
_ON_NODE = re.compile(r"on node (\S+),")
_CHANGES = ("LIST", "ADDED", "MODIFIED", "DELETED")


class ReplayError(ValueError):
    """The recording cannot be replayed; the text says why."""


class NotARecordingError(ReplayError):
    """The lines are not those of a recording."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One line about an object: when (epoch seconds), LIST, ADDED, MODIFIED or DELETED, and the object."""

    t: float
    type: str
    object: Object


@dataclass(frozen=True, slots=True)
class Deed:
    """The begin of a recorded action."""

    t: float
    action: str
    node: str
    params: dict[str, Any]


@dataclass
class Recording:
    """``begin`` and ``end``: first and last line, epoch seconds; ``configs``: each node's kubelet configuration."""

    begin: float
    end: float
    meta: dict[str, Any]
    seen: dict[str, list[Seen]] = field(default_factory=lambda: {plural: [] for plural in _PLURALS})
    deeds: list[Deed] = field(default_factory=list)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def first(self, plural: str) -> list[Object]:
        """The objects of the first list: one line of type LIST each, before any other line of the kind."""
        return [item.object for item in takewhile(lambda item: item.type == "LIST", self.seen[plural])]

    def fault(self) -> float:
        """When the first action began. Raises ReplayError if there is none."""
        if not self.deeds:
            raise ReplayError("the recording holds no action: nothing to replay")
        return self.deeds[0].t

    def renewals(self, node: str) -> list[float]:
        """The renew times of a node's Lease, epoch seconds on the node's clock."""
        leases = [item.object for item in self.seen["leases"] if name_of(item.object) == node]
        return sorted({epoch(lease["spec"]["renewTime"]) for lease in leases if lease["spec"].get("renewTime")})

    def daemon_failures(self) -> dict[tuple[str, str], list[float]]:
        """(uid of the DaemonSet, node) -> when failed pods of it were deleted there before the recording.

        From the events of the first list: the controller's back-off is not to be seen otherwise.
        """
        found: dict[tuple[str, str], list[float]] = {}
        for event in self.first("events"):
            node = _ON_NODE.search(event.get("message") or "")
            if event.get("reason") == "FailedDaemonPod" and node and event.get("lastTimestamp"):
                times = found.setdefault((event["involvedObject"].get("uid", ""), node[1]), [])
                times += [epoch(event["lastTimestamp"])] * int(event.get("count") or 1)
        return {key: sorted(times) for key, times in found.items()}

    def boot_seconds(self, node: str) -> float:
        """Power button to kubelet, as the first power-on of the node shows it; 0 if it was never seen."""
        for deed in self.deeds:
            if deed.action == "power-on" and deed.node == node:
                later = [at for at in self.renewals(node) if at > deed.t]
                return later[0] - deed.t if later else 0.0
        return 0.0

    def monitor_pass(self) -> float | None:
        """When a pass of the node lifecycle controller was seen to write, if one was.

        Only its passes make a node Unknown, and take NoExecute taints away (facts 5.2, 5.4).
        """
        before: dict[str, Object] = {}
        for item in self.seen["nodes"]:
            old = before.get(name_of(item.object))
            if old is not None and _written_by_pass(old, item.object):
                return item.t
            before[name_of(item.object)] = item.object
        return None


def _written_by_pass(old: Object, new: Object) -> bool:
    statuses = [(condition(node, "Ready") or {}).get("status") for node in (old, new)]
    return statuses[0] != "Unknown" and statuses[1] == "Unknown"


def epoch(text: str) -> float:
    """Epoch seconds of an RFC 3339 time. Raises ReplayError."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        raise ReplayError(f"not a time: {text!r}") from error


def parse(lines: Iterable[dict[str, Any]]) -> Recording:
    """From the lines as JSON objects {t, kind, type, object, node}. Raises NotARecordingError."""
    made: Recording | None = None
    for number, line in enumerate(lines, 1):
        try:
            if made is None:
                made = Recording(line["t"], line["t"], line["object"] if line["kind"] == "meta" else {})
            made.end = line["t"]
            _add(made, line)
        except (KeyError, TypeError, AttributeError) as error:
            raise NotARecordingError(f"line {number} is not of a recording: {error!r}") from error
    if made is None:
        raise NotARecordingError("the recording is empty")
    if not made.first("nodes"):
        raise NotARecordingError("the recording has no list of nodes to begin with")
    made.deeds.sort(key=lambda deed: deed.t)
    return made


def _add(made: Recording, line: dict[str, Any]) -> None:
    kind, type_ = line["kind"], line["type"]
    if kind in made.seen:
        if type_ in _CHANGES and "metadata" in line["object"]:
            made.seen[kind].append(Seen(line["t"], type_, line["object"]))
    elif kind == "action" and line["object"].get("phase") == "begin":
        made.deeds.append(Deed(line["t"], type_, line.get("node", ""), line["object"].get("params") or {}))
    elif kind == "host" and type_ == "configz":
        config = line["object"].get("kubeletconfig", line["object"])
        made.configs.setdefault(line["node"], config)
