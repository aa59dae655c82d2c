"""The lab on which a recording is replayed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaos.lab.cluster import Cluster
from chaos.lab.node.machine import Machine
from chaos.lab.replay.recording import Operation, Recording, Stall
from chaos.lab.sim import SimClock, Timer
from chaos.lab.spec import LabSpec


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


@dataclass(frozen=True, slots=True)
class ReplaySession:
    """A simulated cluster, and the recording to replay on it.

    ``follows_chance``: what was chance in the recorded cluster is repeated.
    """

    cluster: Cluster
    recording: Recording
    follows_chance: bool = True

    def machine(self, operation: Operation) -> Machine:
        """Machine of an operation's node."""
        return self.cluster.machines[operation.node]


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
