"""Where a recording is played."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.cluster import Cluster
from chaos.lab.node.machine import Machine
from chaos.lab.replay.recording import Operation, Recording


@dataclass(frozen=True, slots=True)
class ReplaySession:
    """The lab, and what it is to repeat."""

    cluster: Cluster
    recording: Recording

    def machine(self, deed: Operation) -> Machine:
        """The machine that a deed is done to."""
        return self.cluster.machines[deed.node]
