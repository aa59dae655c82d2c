"""What the containers of recorded pods did: how long they took to start, to be ready and to end. Pure.

These are properties of machines and programs, not of Kubernetes, so the lab repeats them.
How containers end, of a recording whose ``meta`` does not say: from Killing events and their exits. Pure.
The mean over the pods of an owner counts for those that were not seen to end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from chaos.lab.objects import Object, condition, is_active, is_deleting, node_of, uid_of
from chaos.lab.recorded.recording import Observation, Recording, event_time, to_epoch
from chaos.lab.snapshot.restored import owner_of

_LOST = ("Unknown", "ContainerStatusUnknown")
_REPORT = 0.35  # mean seconds from the end of containers to the kubelet's status
_TERMINAL = ("Succeeded", "Failed")


@dataclass(slots=True)
class Run:
    """One run of a pod's containers.

    ``delay``: seconds from when the kubelet could start them to running. ``ready_after``: seconds from running to
    Ready, None if it was never Ready. ``ended``: time and exit code of an end by themselves. ``is_old``: it began
    before the recording. ``sync``: seconds from when the kubelet could start them to its first status. ``readiness``:
    times at which probes began to fail, or to succeed again. Times in epoch seconds.
    """

    running_at: float
    delay: float
    ready_after: float | None
    ended: tuple[float, int] | None
    is_old: bool
    sync: float = 0.0
    readiness: list[tuple[float, bool]] = field(default_factory=list)


@dataclass(slots=True)
class PodLife:
    """All runs of one pod in order; the first of a pod of the first list may have begun before.

    ``stop``: seconds from Killing to the end of its last run, and its exit code. ``last_sync``: ``sync`` of the run
    that it did not have any more.
    """

    pod: Object
    is_initial: bool
    runs: list[Run] = field(default_factory=list)
    stop: tuple[float, int] | None = None
    last_sync: float = 0.0


def pod_lives(recording: Recording) -> dict[str, PodLife]:
    """Life of each recorded pod, by uid."""
    observations: dict[str, list[Observation]] = {}
    for item in recording.observations["pods"]:
        observations.setdefault(uid_of(item.object), []).append(item)
    begun, starts = kill_times(recording), _kubelet_starts(recording)
    return {uid: _life(items, begun.get(uid), starts) for uid, items in observations.items()}


def kill_times(recording: Recording) -> dict[str, float]:
    """Time of the first Killing event of each pod, by UID."""
    result: dict[str, float] = {}
    for item in recording.observations["events"]:
        about, at = item.object.get("involvedObject") or {}, item.object.get("firstTimestamp")
        if item.object.get("reason") == "Killing" and about.get("kind") == "Pod" and at:
            result.setdefault(str(about.get("uid", "")), event_time(item))
    return result


def ends_of(pod: Object) -> list[Object]:
    """Ends of the pod's containers, but not by a loss of power (255, Unknown)."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ended = [(item.get("state") or {}).get("terminated") for item in statuses]
    return [item for item in ended if item and item.get("reason") not in _LOST]


def own_exits(life: PodLife) -> Iterator[tuple[float, int]]:
    """Times and exit codes of the ends of containers by themselves."""
    for run in life.runs:
        if run.ended is not None:
            yield run.ended


def _kubelet_starts(recording: Recording) -> dict[str, list[float]]:
    names = {item.object["metadata"]["name"] for item in recording.observations["nodes"]}
    return {name: recording.kubelet_starts(name) for name in names}


def _life(items: list[Observation], killed_at: float | None, kubelet_starts: dict[str, list[float]]) -> PodLife:
    life = _Reader(items[0], killed_at, kubelet_starts).read(items)
    life.pod = items[-1].object
    ends = ends_of(life.pod)
    if killed_at is not None and ends and all(end.get("finishedAt") for end in ends):
        finished = max(to_epoch(end["finishedAt"]) for end in ends)  # whole seconds
        reported = next(item.t for item in items if len(ends_of(item.object)) == len(ends))
        ended = min(finished + 1.0, max(finished, reported - _REPORT))
        life.stop = max(0.0, ended - killed_at), max(int(end.get("exitCode") or 0) for end in ends)
    return life


class _Reader:
    """Reads the runs of one pod. ``_waits_since``: when it was bound, or its last run ended."""

    def __init__(self, first: Observation, killed_at: float | None, kubelet_starts: dict[str, list[float]]) -> None:
        self._life = PodLife(first.object, first.type == "LIST")
        self._killed_at, self._kubelet_starts = killed_at, kubelet_starts
        self._ids: set[str] = set()
        self._waits_since: float | None = None
        self._sync: float | None = None

    def read(self, items: list[Observation]) -> PodLife:
        for item in items:
            if self._waits_since is None and node_of(item.object):
                self._waits_since = item.t
            running = _running_ids(item.object)
            if running and running != self._ids:
                self._begin(item, running)
            elif not running and self._ids:
                self._end(item)
                self._ids = set()
            elif not running and self._sync is None and item.object["status"].get("startTime"):
                self._sync = item.t - self._could_start(item)
            if running:
                self._read_readiness(item)
        self._life.last_sync = self._sync or 0.0
        return self._life

    def _begin(self, item: Observation, running: set[str]) -> None:
        if self._ids:  # it ended and began between two observations
            self._end(item)
        delay = item.t - self._could_start(item)
        self._life.runs.append(Run(item.t, delay, None, None, item.type == "LIST", self._sync or 0.0))
        self._ids, self._sync = running, None

    def _end(self, item: Observation) -> None:
        self._life.runs[-1].ended = _own_end(item, self._killed_at)
        starts = self._starts(item)
        begun = self._life.runs[-1].running_at
        self._sync = item.t - starts[-1] if starts and starts[-1] > begun else 0.0
        self._waits_since = item.t

    def _could_start(self, item: Observation) -> float:
        return max([self._waits_since or item.t, *self._starts(item)])

    def _starts(self, item: Observation) -> list[float]:
        return [at for at in self._kubelet_starts.get(node_of(item.object), []) if at <= item.t]

    def _read_readiness(self, item: Observation) -> None:
        """Note changes of Ready that a probe explains. A node controller gives no reason when it writes False."""
        run, ready = self._life.runs[-1], condition(item.object, "Ready") or {}
        is_ready = ready.get("status") == "True"
        was_ready = not run.readiness or run.readiness[-1][1]
        if run.ready_after is None:
            run.ready_after = item.t - run.running_at if is_ready else None
        elif is_deleting(item.object) or is_ready == was_ready:
            return
        elif is_ready or ready.get("reason") == "ContainersNotReady":
            run.readiness.append((item.t, is_ready))


def _running_ids(pod: Object) -> set[str]:
    """Identities of the containers if all of them run; otherwise nothing."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    if not all((item.get("state") or {}).get("running") is not None for item in statuses):
        return set()
    return {str(item.get("containerID", "")) for item in statuses}


def _own_end(item: Observation, killed_at: float | None) -> tuple[float, int] | None:
    """Time and exit code if all containers ended, and neither the kubelet nor a loss of power ended them."""
    pod = item.object
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    states = [item.get("state") or {} for item in statuses]
    ends: list[Object] = [state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
            for state, status in zip(states, statuses, strict=True)]  # fmt: skip
    if is_deleting(pod) or not ends or not all(end and end.get("finishedAt") for end in ends):
        return None
    if (
        any(end.get("reason") in _LOST for end in ends)
        or (condition(pod, "DisruptionTarget") or {}).get("status") == "True"
    ):
        return None
    if pod["status"].get("phase") in _TERMINAL and killed_at is not None:
        return None
    return item.t - _REPORT, max(int(end.get("exitCode") or 0) for end in ends)


INFERRED = "behaviourInferred"  # in ``meta``: the recording itself does not say
_KILLED = 137
_POLL = 0.5  # seconds; what the replay adds to stopsAfter of recorded containers
_SHUTDOWNS = ("poweroff", "reboot", "schedule-shutdown", "prepare-for-shutdown")
_AT_LEAST = 2.0  # seconds after the start of a shutdown, in which containers that react to SIGTERM have ended


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
