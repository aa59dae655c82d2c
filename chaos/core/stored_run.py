"""A run as its directory shows it, also without a result, or damaged, and pending undo of earlier runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from chaos.core.result import RunResult

SHORT_UID = 8  # characters of a cluster's UID in tables


class Source(StrEnum):
    """Where a pending undo is recorded."""

    JOURNAL = "journal"  # in a run directory of this machine
    CLUSTER = "cluster"  # the copy of the journal, a ConfigMap
    NODE = "node"  # a mark on a Node


class PendingUndoFinding(Struct, frozen=True, order=True):
    """``description``: the steps to be undone, or why they are unknown. ``hint``: what ends this, in the imperative.

    ``run`` is "" if it is unknown.
    """

    run: str
    source: Source
    description: str
    hint: str

    def __str__(self) -> str:
        run = f"run {self.run}" if self.run else "an unknown run"
        return f"{run} has a pending undo: {self.description}"


class RunState(StrEnum):
    """RUNNING: a process of this machine has the journal open, the run's or that of an undo before there is a result.

    NO_RESULT: the run was killed, or goes on on another machine.
    """

    FINISHED = "finished"
    RUNNING = "running"
    NO_RESULT = "no-result"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run directory. Times in seconds since the epoch by the cluster's clock, None if unknown.

    ``name``: EXPERIMENT/STAMP, as commands accept it. ``run``: its ID, "" if unreadable. ``hosts``: their number in the
    inventory. ``pending``: whether an undo is pending, None if unknown. ``has_replica``: the cluster may have a copy of
    the journal. ``problem``: what cannot be read, and why. ``experiment_hash``: SHA-256 of the experiment's file.
    """

    directory: Path
    name: str
    state: RunState
    experiment: str
    run: str = ""
    result: RunResult | None = None
    started: float | None = None
    targets: dict[str, tuple[str, ...]] | None = None
    inventory: str = ""
    cluster_uid: str = ""
    simulated: bool = False
    hosts: int = 0
    by: str = ""
    nodefall: str = ""
    experiment_hash: str = ""
    pending: bool | None = False
    has_replica: bool = False
    problem: str = ""

    @property
    def verdict(self) -> str:
        """The status of the result, or how the run ended instead; without a result, the state."""
        return self.result.ending if self.result else str(self.state)

    @property
    def duration(self) -> float | None:
        """Seconds from the start to the end; None without a result."""
        return max(0.0, self.result.ended - self.result.started) if self.result else None

    @property
    def cluster(self) -> str:
        """Name of the inventory and the begin of the cluster's UID, as ``staging 6f0c1a2b``."""
        known = " ".join(part for part in (self.inventory, self.cluster_uid[:SHORT_UID]) if part)
        return (known or "unknown") + (" (simulated)" if self.simulated else "")

    @property
    def cluster_key(self) -> str:
        """Equal in runs on one cluster, "" if unknown. Labs of one inventory are one cluster, whatever the seed is."""
        return f"{self.inventory} with {self.hosts} hosts" if self.simulated else self.cluster_uid

    def is_on(self, cluster: str) -> bool:
        """Whether ``cluster`` is the name of the inventory, or the begin of the cluster's UID."""
        return bool(cluster) and (self.inventory == cluster or self.cluster_uid.startswith(cluster))
