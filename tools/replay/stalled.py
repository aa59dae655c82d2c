"""Clocks and controllers that stand still where a recording shows that the API server did.

How long each request waited is chance that a batch does not show, so the lab's controllers stand still as long, and in
the comparison the time of either side stands still, too. The states and their order are compared as always.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from chaos.lab.cluster import Cluster
from chaos.lab.objects import Object, condition, controller_of, is_deleting, uid_of
from chaos.lab.recorded.moments import changes
from chaos.lab.recorded.recording import Observation, Recording, Stall
from chaos.lab.recorded.stalls import merged
from chaos.lab.sim import SimClock, Timer
from chaos.lab.spec import LabSpec

_REACTION = 0.05  # seconds; a controller writes after what it reacts to, which may have the same time
_USERS = ("user-delete", "user-force-delete", "user-evict")
_RENEW_DEADLINE = 10.0
_CACHES = 15.0  # seconds from the registration of nodes until all caches are filled, on a busy machine
_MANAGER = "kube-controller-manager"


def controller_writes(recording: Recording) -> list[float]:
    """Times at which controllers of workloads created or deleted a pod, in order."""
    operations = [item for item in recording.operations if item.action in _USERS and item.params["plural"] == "pods"]
    by_users = {uid_of(item.params["object"]) for item in operations}
    return sorted(
        {
            item.t + _REACTION
            for item, before in changes(recording.observations["pods"])
            if item.type not in ("LIST", "DELETED")
            and controller_of(item.object) is not None
            and _is_write(item.object, before)
            and not (before is not None and uid_of(item.object) in by_users)
        }
    )


def _is_write(pod: Object, before: Object | None) -> bool:
    """Whether a controller of a workload made this change: a new pod, or a deletion without a reason."""
    if before is None:
        return True
    target = condition(pod, "DisruptionTarget") or {}
    return is_deleting(pod) and not is_deleting(before) and target.get("status") != "True"


def still_times(recording: Recording) -> list[Stall]:
    """When the controllers do nothing: in stalls, and from an end of their manager until the next one works.

    A manager ends that could not renew its lease for ten seconds (--leader-elect-renew-deadline), as in a stall; the
    next one registers all nodes once the caches for that are filled (facts 5.6). Other controllers wait for theirs;
    the first change that any of them makes soon after shows for how long.
    """
    stalls = recording.stalls
    exits = [
        at
        for at in _manager_exits(recording)
        if any(stall.begin <= at <= stall.end + 2 * _RENEW_DEADLINE for stall in stalls)
    ]
    return merged([*stalls, *(Stall(at - _RENEW_DEADLINE, _next_work(recording, at)) for at in exits)])


def _manager_exits(recording: Recording) -> list[float]:
    operations = [item for item in recording.operations if item.action == "container-exit"]
    return [item.t for item in operations if item.params["pod"][1].startswith(f"{_MANAGER}-")]


def _next_work(recording: Recording, t: float) -> float:
    """When the controllers worked again after ``t``; infinity if no node was registered."""
    events = [item for item in recording.observations["events"] if item.object.get("reason") == "RegisteredNode"]
    registered = min((item.t for item in events if item.type != "LIST" and item.t > t), default=float("inf"))
    return next((at for at in controller_writes(recording) if registered < at <= registered + _CACHES), registered)


class StalledClock:
    """Time that stands still during stalls."""

    def __init__(self, stalls: Iterable[Stall]) -> None:
        self._stalls = list(stalls)

    def time(self, t: float) -> float:
        """``t`` without the time of stalls before."""
        return t - sum(min(t, stall.end) - stall.begin for stall in self._stalls if stall.begin < t)

    def original(self, t: float) -> float:
        """First time at which :meth:`time` is ``t``."""
        for stall in self._stalls:
            t += stall.end - stall.begin if t > stall.begin else 0.0
        return t

    def observations(self, observations: dict[str, list[Observation]]) -> dict[str, list[Observation]]:
        """The same observations at the times of this clock."""
        return {
            kind: [replace(item, t=self.time(item.t)) for item in items] if self._stalls else items
            for kind, items in observations.items()
        }

    def recording(self, recording: Recording) -> Recording:
        """The same recording at the times of this clock."""
        operations = [replace(item, t=self.time(item.t)) for item in recording.operations]
        start, end = self.time(recording.start), self.time(recording.end)
        observations = self.observations(recording.observations)
        return replace(recording, start=start, end=end, operations=operations, observations=observations)


class StallingCluster(Cluster):
    """A cluster whose control plane stands still at these times, and then does only what is due at ``steps``."""

    def __init__(self, spec: LabSpec, stalls: list[Stall], steps: list[float]) -> None:
        super().__init__(spec)
        for at in steps:
            if any(stall.begin < at < stall.end for stall in stalls):
                self.sim.at(at, self._clock.step)
        for stall in stalls:
            self.sim.at(stall.begin, self._clock.stall)
            if stall.end < math.inf:
                self.sim.at(stall.end, self._clock.resume)

    def _controllers_clock(self) -> SimClock:
        self._clock = StallingClock(self.sim)
        return self._clock


class StallingClock(SimClock):
    """Sets its timers on ``base``. Those that are due while it is stalled run, in this order, when the stall ends."""

    def __init__(self, base: SimClock) -> None:
        self._base = base
        self._is_stalled = False
        self._due: list[Timer] = []

    @property
    def now(self) -> float:  # type: ignore[override]
        """Time of ``base``, which goes on."""
        return self._base.now

    @property
    def rng(self) -> random.Random:  # type: ignore[override]
        """Random numbers of ``base``."""
        return self._base.rng

    def at(self, due: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call at ``due``, or when the stall ends."""
        timer = self._base.at(due, call, *args)
        timer.guard = self._may_run
        return timer

    def stall(self) -> None:
        """Run no timer from now on."""
        self._is_stalled = True

    def resume(self) -> None:
        """Run what was due, and the rest in time."""
        self._is_stalled = False
        due, self._due = self._due, []
        for timer in due:
            self._base.at(self._base.now, timer.run)

    def step(self) -> None:
        """Run what was due; what that leads to waits for the next step, or for the end of the stall."""
        if self._is_stalled:
            self.resume()
            self._base.at(self._base.now, self.stall)

    def _may_run(self, timer: Timer) -> bool:
        if self._is_stalled:
            self._due.append(timer)
        return not self._is_stalled and not timer.cancelled
