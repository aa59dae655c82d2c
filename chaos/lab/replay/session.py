"""The lab on which a recording is replayed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chaos.lab.cluster import Cluster
from chaos.lab.node.machine import Machine
from chaos.lab.replay.recording import Operation, Recording, Stall
from chaos.lab.replay.stalls import StallingClock
from chaos.lab.sim.clock import SimClock
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
