"""The lab on which a recording is replayed."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.cluster import Cluster
from chaos.lab.node.machine import Machine
from chaos.lab.replay.recording import Operation, Recording


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
