"""A recording as the replay needs it: what was there at first, what changed, what was done."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

from chaos.lab.objects.accessors import NOT_READY, UNREACHABLE, Object, condition_status, has_taint, name_of

PLURALS = (
    "priorityclasses", "poddisruptionbudgets", "deployments", "statefulsets", "daemonsets", "replicasets",
    "nodes", "pods", "leases", "events",
)  # fmt: skip
_QUEUE_DELAY = 0.05  # the middle of how long a node waits in the NoExecute queue
_ON_NODE = re.compile(r"on node (\S+),")


class ReplayError(ValueError):
    """The recording cannot be replayed; the text says why."""


class NotARecordingError(ReplayError):
    """The lines are not those of a recording."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One line about an object: when (epoch seconds), LIST, ADDED, MODIFIED or DELETED, and the object."""

    t: float
    type: str
    object: Object


@dataclass(frozen=True, slots=True)
class Operation:
    """The begin of an action, by the name that it has in module ``verbs``."""

    t: float
    action: str
    node: str
    params: dict[str, Any]
    command: str = ""


@dataclass
class Recording:
    """``begin`` and ``end``: first and last line, epoch seconds; ``configs``: each node's kubelet configuration.

    ``locks``: when, on which node, whether the kubelet was seen to hold an inhibitor.
    """

    start: float
    end: float
    meta: dict[str, Any]
    observations: dict[str, list[Observation]] = field(default_factory=lambda: {plural: [] for plural in PLURALS})
    operations: list[Operation] = field(default_factory=list)
    inhibitor_samples: list[tuple[float, str, bool]] = field(default_factory=list)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def initial_objects(self, plural: str) -> list[Object]:
        """The objects of the first list: one line of type LIST each, before any other line of the kind."""
        return [item.object for item in takewhile(lambda item: item.type == "LIST", self.observations[plural])]

    def first_operation_time(self) -> float:
        """When the first action began. Raises ReplayError if there is none."""
        if not self.operations:
            raise ReplayError("the recording holds no action: nothing to replay")
        return self.operations[0].t

    def renewals(self, node: str) -> list[float]:
        """The renew times of a node's Lease, epoch seconds on the node's clock."""
        leases = [item.object for item in self.observations["leases"] if name_of(item.object) == node]
        return sorted({to_epoch(lease["spec"]["renewTime"]) for lease in leases if lease["spec"].get("renewTime")})

    def daemon_failures(self) -> dict[tuple[str, str], list[float]]:
        """(uid of the DaemonSet, node) -> when failed pods of it were deleted there before the recording.

        From the events of the first list: the controller's back-off is not to be seen otherwise.
        """
        found: dict[tuple[str, str], list[float]] = {}
        for event in self.initial_objects("events"):
            node = _ON_NODE.search(event.get("message") or "")
            if event.get("reason") == "FailedDaemonPod" and node and event.get("lastTimestamp"):
                times = found.setdefault((event["involvedObject"].get("uid", ""), node[1]), [])
                times += [to_epoch(event["lastTimestamp"])] * int(event.get("count") or 1)
        return {key: sorted(times) for key, times in found.items()}

    def kubelet_starts(self, node: str) -> list[float]:
        """When its kubelet was seen to start: its own event, which comes within 0.2 s."""
        return self.kubelet_events(node, "Starting")

    def kubelet_events(self, node: str, reason: str) -> list[float]:
        """When the kubelet's events of this reason about its own Node came."""
        return [
            item.t
            for item in self.observations["events"]
            if item.type != "LIST"
            and item.object.get("reason") == reason
            and item.object["involvedObject"].get("kind") == "Node"
            and item.object["involvedObject"].get("name") == node
            and (item.object.get("source") or {}).get("component") == "kubelet"
        ]

    def boot_seconds(self, node: str) -> float:
        """Power button to kubelet, as the first power-on of the node shows it; 0 if it was never seen."""
        for deed in self.operations:
            if deed.action in ("power-on", "hard-reboot") and deed.node == node:
                later = [at for at in self.kubelet_starts(node) if at > deed.t]
                later += [at for at in self.renewals(node) if at > deed.t and deed.action == "power-on"]
                return min(later) - deed.t if later else 0.0
        return 0.0

    def node_at(self, name: str, t: float) -> Object | None:
        """The Node as it was then, None if there was none."""
        seen = [item for item in self.observations["nodes"] if item.t <= t and name_of(item.object) == name]
        return seen[-1].object if seen and seen[-1].type != "DELETED" else None

    def monitor_pass(self) -> float | None:
        """When a pass of the node lifecycle controller was seen to write, if one was.

        Only its passes make a node Unknown, or take NoExecute taints away (facts 5.2, 5.4). Next best is when it put
        one on a node that is not Ready: a queue that is looked at every 100 ms stands between.
        """
        before: dict[str, Object] = {}
        queued: float | None = None
        for item in self.observations["nodes"]:
            new, old = item.object, before.get(name_of(item.object))
            if old is not None and _is_monitor_write(old, new):
                return item.t
            if old is not None and queued is None and _has_no_execute_taint(new) and not _has_no_execute_taint(old):
                queued = item.t - _QUEUE_DELAY
            before[name_of(new)] = new
        return queued


def _is_monitor_write(old: Object, new: Object) -> bool:
    statuses = [condition_status(node, "Ready") for node in (old, new)]
    if statuses[0] != "Unknown" and statuses[1] == "Unknown":
        return True
    return statuses[1] == "True" and _has_no_execute_taint(old) and not _has_no_execute_taint(new)


def _has_no_execute_taint(node: Object) -> bool:
    """Whether it has a NoExecute taint for its condition."""
    return any(has_taint(node, key, "NoExecute") for key in (NOT_READY, UNREACHABLE))


def to_epoch(text: str) -> float:
    """Epoch seconds of an RFC 3339 time. Raises ReplayError."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        raise ReplayError(f"not a time: {text!r}") from error
