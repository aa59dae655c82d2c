"""A recording in the form of the replay: initial objects, changes, operations.

Requests of a run to the API server: when they were answered, and that the recording proves their effect. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

from chaos.lab.objects import (
    Object,
    is_deleting,
    name_of,
    namespace_of,
    uid_of,
)

PLURALS = (
    "priorityclasses", "poddisruptionbudgets", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs",
    "nodes", "pods", "leases", "events", "persistentvolumes", "persistentvolumeclaims", "volumeattachments",
)  # fmt: skip
HALF_SECOND = 0.5
_BOOT = 2.0  # seconds; as short as that of a container, so that the kubelet can start as soon as it did
_LATE_EVENT = 2.0  # seconds from an event to its receipt
_ON_NODE = re.compile(r"on node (\S+),")


class ReplayError(ValueError):
    """The recording cannot be replayed."""


class NotReplayedError(ReplayError):
    """The lab cannot simulate one operation."""


class NotARecordingError(ReplayError):
    """The entries are not those of a recording."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One observed object: time in epoch seconds, type (LIST, ADDED, MODIFIED or DELETED), and the object."""

    t: float
    type: str
    object: Object


@dataclass(frozen=True, slots=True)
class Operation:
    """Start of an action, at ``t`` epoch seconds; ``action`` is a name of module ``verbs``.

    ``is_inferred``: no one did it, it shows only in what followed.
    """

    t: float
    action: str
    node: str
    params: dict[str, Any]
    command: str = ""
    is_inferred: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """A span of epoch seconds: from the last change that came in time to the end of the late batch."""

    begin: float
    end: float


@dataclass
class Recording:
    """Observations by plural, operations, and host data of one recording.

    ``start`` and ``end`` are the times of the first and last entry, in epoch seconds. ``inhibitor_samples``: time,
    node, and whether the kubelet held an inhibitor. ``configs``: kubelet configuration by node. ``findings``: what
    cannot be replayed, and why. ``cpu_requests``: inferred ones, by the uid of a pod. ``stalls``: in order.
    ``answers``: when a renewal came, by node and renew time.
    """

    start: float
    end: float
    meta: dict[str, Any]
    observations: dict[str, list[Observation]] = field(default_factory=lambda: {plural: [] for plural in PLURALS})
    operations: list[Operation] = field(default_factory=list)
    inhibitor_samples: list[tuple[float, str, bool]] = field(default_factory=list)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    cpu_requests: dict[str, str] = field(default_factory=dict)
    stalls: list[Stall] = field(default_factory=list)
    answers: dict[tuple[str, float], float] = field(default_factory=dict)

    def add_finding(self, text: str) -> None:
        """Add what the lab cannot replay, with the reason, once."""
        if text not in self.findings:
            self.findings.append(text)

    def initial_objects(self, plural: str) -> list[Object]:
        """Objects of the first list: the LIST observations before any other of this kind."""
        return [item.object for item in takewhile(lambda item: item.type == "LIST", self.observations[plural])]

    def first_operation_time(self) -> float:
        """Time of the first operation; the start without operations."""
        return self.operations[0].t if self.operations else self.start

    def renewals(self, node: str) -> list[float]:
        """Renew times of a node's Lease, in epoch seconds of the node's clock."""
        leases = [item.object for item in self.observations["leases"] if name_of(item.object) == node]
        return sorted({to_epoch(lease["spec"]["renewTime"]) for lease in leases if lease["spec"].get("renewTime")})

    def daemon_failures(self) -> dict[tuple[str, str], list[float]]:
        """Deletion times of failed pods before the recording, by UID of the DaemonSet and node.

        From the events of the first list, as the controller's back-off shows nowhere else.
        """
        result: dict[tuple[str, str], list[float]] = {}
        for event in self.initial_objects("events"):
            node = _ON_NODE.search(event.get("message") or "")
            if event.get("reason") == "FailedDaemonPod" and node and event.get("lastTimestamp"):
                times = result.setdefault((event["involvedObject"].get("uid", ""), node[1]), [])
                times += [to_epoch(event["lastTimestamp"])] * int(event.get("count") or 1)
        return {key: sorted(times) for key, times in result.items()}

    def kubelet_starts(self, node: str) -> list[float]:
        """Start times of the node's kubelet: of its Starting events, which follow within 0.2 s."""
        return self.kubelet_events(node, "Starting")

    def kubelet_events(self, node: str, reason: str) -> list[float]:
        """Times of the kubelet's events with this reason about its own Node, their own if they came late."""
        return [
            event_time(item)
            for item in self.observations["events"]
            if item.type in ("ADDED", "MODIFIED")
            and item.object.get("reason") == reason
            and item.object["involvedObject"].get("kind") == "Node"
            and item.object["involvedObject"].get("name") == node
            and (item.object.get("source") or {}).get("component") == "kubelet"
        ]

    def boot_seconds(self, node: str) -> float:
        """Seconds from power-on to kubelet start, of the quickest boot; 0 without one.

        A machine that is still running ignores a power-on. When a reboot powers it on is not recorded.
        """
        durations = []
        for operation in self.operations:
            if operation.action in ("power-on", "hard-reboot") and operation.node == node:
                later = [at for at in self.kubelet_starts(node) if at > operation.t]
                later += [at for at in self.renewals(node) if at > operation.t and operation.action == "power-on"]
                durations += [min(later) - operation.t] if later else []
        is_rebooted = any(item.action == "reboot" and item.node == node for item in self.operations)
        return min(durations, default=_BOOT if is_rebooted and self.kubelet_starts(node) else 0.0)

    def node_at(self, name: str, t: float) -> Object | None:
        """The Node at time ``t``; None if there was none."""
        result = [item for item in self.observations["nodes"] if item.t <= t and name_of(item.object) == name]
        return result[-1].object if result and result[-1].type != "DELETED" else None


def event_time(event: Observation) -> float:
    """Time of receipt, or of the event itself, which has whole seconds, if that is long before."""
    at = event.object.get("lastTimestamp") or event.object.get("firstTimestamp")
    own = to_epoch(at) + HALF_SECOND if at else event.t
    return own if event.t - own > _LATE_EVENT else event.t


def to_epoch(text: str) -> float:
    """Convert an RFC 3339 time to epoch seconds. Raises ReplayError."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, TypeError) as error:
        raise ReplayError(f"invalid RFC 3339 time: {text!r}") from error


_WORKLOAD = "workload"  # stands for the namespace of the run's workload


@dataclass(slots=True)
class Request:
    """One step's request, in epoch seconds: sent after ``begun``, answered and proved at these times, if it was.

    It wrote the object of this kind, namespace and name, or the pods with these UIDs.
    """

    begun: float
    answered: float | None = None
    proved: float | None = None
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uids: set[str] = field(default_factory=set)

    def wrote(self, item: Observation, before: Object | None, plural: str) -> bool:
        """Whether the change is the one that it made. Only what was seen between begin and proof can have proved it."""
        if before is None or self.answered is None or self.proved is None or not self.begun <= item.t <= self.proved:
            return False
        obj = item.object
        if uid_of(obj) in self.uids:
            return is_deleting(obj) and not is_deleting(before) and obj.get("status") == before.get("status")
        is_named = (namespace_of(obj), name_of(obj)) == (self.namespace, self.name) and f"{self.kind}s" == plural
        return is_named and obj["metadata"].get("generation") != before["metadata"].get("generation")


class Requests:
    """The requests of all steps, from the entries of actions."""

    def __init__(self) -> None:
        self._by_step: dict[tuple[str, str], Request] = {}

    def __iter__(self) -> Iterator[Request]:
        return iter(self._by_step.values())

    def add(self, entry: dict[str, Any], meta: dict[str, Any]) -> None:
        """Add an entry of an action. ``meta``: that of the recording."""
        t, body, step = entry["t"], entry["object"], (str(entry["object"].get("step", "")), str(entry.get("node", "")))
        params = body.get("params") or {}
        if body.get("phase") == "begin":
            namespace = str(params.get("namespace", ""))
            namespace = str(meta.get(_WORKLOAD, "")) if namespace == _WORKLOAD else namespace
            kind, name = str(params.get("kind", "")).lower(), str(params.get("name", ""))
            self._by_step[step] = Request(t, kind=kind, namespace=namespace, name=name)
        elif step in self._by_step:
            _complete(self._by_step[step], t, body)


def _complete(request: Request, t: float, body: dict[str, Any]) -> None:
    evidence = body.get("evidence") or {}
    if body.get("phase") == "returned" and body.get("delivery") == "answered":
        request.answered = t
        pods: Iterable[Any] = evidence.get("pods") or []
        request.uids |= {str(pod["uid"]) for pod in pods if pod.get("uid") and pod.get("status") == _CREATED}
    elif body.get("phase") == "proved" and request.proved is None:
        request.proved = t


_CREATED = 201  # the answer to an eviction that was granted
