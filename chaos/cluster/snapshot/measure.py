"""Times that pods really took, by owner: to start, to pull an image, to end. From statuses and events.

Most of these times have whole seconds, as those of Kubernetes; a pull has the precision of its event.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import ceil
from typing import Any

Object = Mapping[str, Any]
_PULLED = re.compile(r'pulled image "([^"]+)" in ([0-9hmsµun.]+)')
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s|µs|us|ns)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}
_SET_POD = re.compile(r"(create|delete) Pod (\S+) in StatefulSet (\S+) successful", re.IGNORECASE)
_POWER_LOSS = ("Unknown", "ContainerStatusUnknown")
_KILLED = 137
_DEFAULT_GRACE, _SLACK = 30.0, 5.0  # seconds; slack for whole seconds, and for the kubelet's and the set's reaction
Owner = tuple[str, str, str]  # namespace, kind, name


class Measurements:
    """Collects events first, then pods; :meth:`lines` are the results."""

    def __init__(self) -> None:
        self._killed: dict[str, tuple[float, float]] = {}  # first and last Killing event by uid of the pod
        self._pulls: dict[str, list[float]] = defaultdict(list)
        self._set_pods: dict[tuple[str, str, str], dict[str, tuple[float, int]]] = defaultdict(dict)
        self._limits: dict[Owner, float] = {}  # longest possible end, in seconds
        self._starts: dict[Owner, list[float]] = defaultdict(list)
        self._ends: dict[Owner, list[float]] = defaultdict(list)
        self._codes: dict[Owner, Counter[int]] = defaultdict(Counter)

    def add_event(self, event: Object) -> None:
        """Add an Event. Events without a measurement are ignored."""
        about, reason, message = event.get("involvedObject") or {}, event.get("reason"), str(event.get("message") or "")
        first, last = (_epoch(event.get(key) or event.get("eventTime")) for key in ("firstTimestamp", "lastTimestamp"))
        if first is None or last is None:
            return
        if reason == "Killing" and about.get("kind") == "Pod":
            uid = str(about.get("uid") or "")
            before = self._killed.get(uid, (first, last))
            self._killed[uid] = min(first, before[0]), max(last, before[1])
        elif reason == "Pulled" and (found := _PULLED.search(message)):
            seconds = _seconds(found[2])
            self._pulls[found[1]] += [seconds] if seconds is not None else []
        elif reason in ("SuccessfulCreate", "SuccessfulDelete") and (found := _SET_POD.match(message)):
            key = (str(about.get("namespace") or ""), found[3], found[2])
            self._set_pods[key][found[1].lower()] = last, int(event.get("count") or 1)

    def add_pod(self, pod: Object) -> None:
        """A pod with its status."""
        owner, status = owner_of(pod), pod.get("status") or {}
        statuses = [item for item in status.get("containerStatuses") or [] if isinstance(item, dict)]
        if (start := _start_time(status, statuses)) is not None:
            self._starts[owner].append(start)
        grace = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
        limit = self._limits[owner] = _SLACK + (float(grace) if isinstance(grace, int) else _DEFAULT_GRACE)
        killed = self._killed.get(str(pod["metadata"].get("uid") or ""), ())
        for item in statuses:
            for ended in _ends(item):
                code, at = ended.get("exitCode"), _epoch(ended.get("finishedAt"))
                taken = [at - begin for begin in killed if at is not None and 0 <= at - begin <= limit]
                if taken:
                    self._ends[owner].append(min(taken))
                    self._codes[owner][int(code or 0)] += 1

    def forget_pods(self) -> None:
        """Discard the measurements of pods, because their list restarts."""
        self._starts.clear()
        self._limits.clear()
        self._ends.clear()
        self._codes.clear()

    def lines(self) -> list[dict[str, Any]]:
        """One object for each owner and each image, with counts, and seconds as percentiles 5, 50 and 95."""
        self._add_set_pods()
        rows: list[dict[str, Any]] = []
        for owner in sorted({*self._starts, *self._ends}):
            namespace, kind, name = owner
            row: dict[str, Any] = {"namespace": namespace, "kind": kind, "name": name}
            row |= {"start": spread(self._starts[owner])} if self._starts[owner] else {}
            if self._ends[owner]:
                codes = self._codes[owner]
                row["end"] = spread(self._ends[owner]) | {"killed": codes[_KILLED], "exitCode": _main_code(codes)}
            rows.append(row)
        pulls = sorted(self._pulls.items())
        return rows + [{"kind": "Image", "name": image, "pull": spread(times)} for image, times in pulls if times]

    def _add_set_pods(self) -> None:
        """Add ends of a StatefulSet's pods: it creates a pod once its predecessor is gone.

        Not if a pod was created more often than deleted by the set, as others have deleted it then, nor if it ended
        later than its grace period allows, as its node was down.
        """
        for (namespace, name, _), events in self._set_pods.items():
            owner = namespace, "StatefulSet", name
            if len(events) == 2:
                (created, creations), (deleted, deletions) = events["create"], events["delete"]
                taken, is_next = created - deleted, creations - deletions in (0, 1)
                if is_next and 0 <= taken <= self._limits.get(owner, _SLACK + _DEFAULT_GRACE):
                    self._ends[owner].append(taken)


def owner_of(pod: Object) -> Owner:
    """Namespace, kind and name of a pod's controller, of a ReplicaSet's its Deployment; of the pod itself without."""
    metadata = pod["metadata"]
    namespace, labels = str(metadata.get("namespace") or ""), metadata.get("labels") or {}
    for reference in metadata.get("ownerReferences") or []:
        if reference.get("controller"):
            kind, name = str(reference.get("kind")), str(reference.get("name"))
            digest = labels.get("pod-template-hash")
            if kind == "ReplicaSet" and digest and name.endswith(f"-{digest}"):
                return namespace, "Deployment", name.removesuffix(f"-{digest}")
            return namespace, kind, name
    return namespace, "Pod", str(metadata.get("name"))


def spread(times: Iterable[float]) -> dict[str, float]:
    """Number, and percentiles in seconds by the nearest rank."""
    ordered = sorted(times)
    ranks = {f"p{share}": ordered[max(0, ceil(share * len(ordered) / 100) - 1)] for share in (5, 50, 95)}
    return {"number": len(ordered), **{key: round(value, 3) for key, value in ranks.items()}}


def _start_time(status: Object, statuses: list[Any]) -> float | None:
    """Seconds from PodScheduled to Ready; None for a pod that is not Ready, has restarted, or was unready since."""
    conditions = {item.get("type"): item for item in status.get("conditions") or [] if isinstance(item, dict)}
    ready, bound = conditions.get("Ready") or {}, conditions.get("PodScheduled") or {}
    if ready.get("status") != "True" or not statuses or any(item.get("restartCount") for item in statuses):
        return None
    begin, end = _epoch(bound.get("lastTransitionTime")), _epoch(ready.get("lastTransitionTime"))
    return end - begin if begin is not None and end is not None and end >= begin else None


def _ends(item: Object) -> list[Object]:
    """Ends of a container, the present and the last one, but not by a loss of power."""
    found = [(item.get(key) or {}).get("terminated") for key in ("state", "lastState")]
    return [ended for ended in found if ended and ended.get("reason") not in _POWER_LOSS]


def _main_code(codes: Counter[int]) -> int:
    """The most frequent exit code except SIGKILL's, or 0."""
    return next((code for code, _ in codes.most_common() if code != _KILLED), 0)


def _epoch(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None


def _seconds(text: str) -> float | None:
    """Seconds of a Go duration."""
    parts = _PART.findall(text)
    joined = "".join(number + unit for number, unit in parts)
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts and joined == text else None
