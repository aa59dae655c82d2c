"""Result of a run, or of judging a recording: the input of renderers and the content of result.json.

And what a live run knows at one tick, for views of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from chaos.core.action import ProofStatus
from chaos.core.moments import Moment
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict

RESULT_VERSION = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added
REFUSED, ABORTED, INTERRUPTED = "refused: ", "aborted: ", "interrupted by "  # how the headline of such a run begins


class Phases(Struct, frozen=True):
    """Phases of a step on a node, in epoch seconds; None if unknown.

    ``armed``: the command was ready on the host. ``fired``: the write that started it. ``began``: its start by the host
    clock. ``proven``: the last entry that proves the step.
    """

    armed: float | None = None
    fired: float | None = None
    began: float | None = None
    proven: float | None = None


class StepResult(Struct, frozen=True):
    """One step on one node, and whether its effect is proven. Times in epoch seconds."""

    step: str
    action: str
    node: str
    begin: Moment | None
    returned: Moment | None
    delivery: str
    command: str
    proof_status: ProofStatus
    because: str
    evidence: tuple[int, ...] = ()
    weak: bool = False
    phases: Phases = Phases()


class UndoResult(Struct, frozen=True):
    """One undo: proven, or pending with the reason."""

    step: str
    action: str
    node: str
    proven: bool
    because: str


class ForeignFault(Struct, frozen=True):
    """A change of a node by someone else: no step, no undo and no controller of Kubernetes explains it.

    Or a restart of kube-controller-manager, with ``node`` empty.

    ``text``: ``worker-2 was cordoned by kubectl (field manager)``. ``by``: "unknown" if nothing names it. ``at``: when
    it was observed, ``since``: from when it may have had effect (epoch seconds).
    """

    node: str
    kind: str  # a ForeignKind of the judge
    text: str
    by: str
    at: Moment
    since: Moment
    evidence: tuple[int, ...] = ()


class Unnoticed(Struct, frozen=True):
    """A time in which the API called a node, or pods on it, Ready, though its machine was off. Epoch seconds.

    ``is_over``: false if it lasted to the end of the recording. ``pods``: how many were reported Ready at its start;
    ``was_ready``: whether the node was. ``evidence``: the reading ``off``, and the entry that ended it.
    """

    node: str
    since: float
    until: float
    is_over: bool
    was_ready: bool
    pods: int
    evidence: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        return self.until - self.since


class RunResult(Struct, frozen=True):
    """``status`` is the worst verdict; ``exit_code`` the command's (a pending undo takes precedence).

    ``headline`` is ``tally: sentence``, like ``1 of 8 violated: Pods on worker-2 were not replaced within 40 s``; both
    are empty if the run ended early, and the headline has the reason.
    """

    version: int
    run: str
    experiment: str
    title: str
    status: Status
    exit_code: int
    headline: str  # one line
    simulated: bool
    kubernetes: str
    cluster_uid: str
    started: Moment
    ended: Moment
    targets: dict[str, tuple[str, ...]]
    steps: tuple[StepResult, ...]
    steady_state: tuple[Verdict, ...]
    hypothesis: tuple[Verdict, ...]
    abort: tuple[Verdict, ...] = ()
    recovery: tuple[Verdict, ...] = ()
    undo: tuple[UndoResult, ...] = ()
    leftovers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = {}
    started_by: str = ""  # login@machine/process
    nodefall_version: str = ""  # version
    plan_hash: str = ""
    foreign_faults: tuple[ForeignFault, ...] = ()  # in the order of their observation
    address_changes: tuple[str, ...] = ()  # of machines, one sentence each
    tally: str = ""
    sentence: str = ""  # for people, at most 20 words
    unnoticed: tuple[Unnoticed, ...] = ()  # in order of time; a live result has none
    series: str = ""  # "2 of 5" of a series, of which this is a run

    @property
    def ending(self) -> str:
        """How the run ended, in one word: aborted, refused, interrupted, or otherwise the status."""
        for word, prefix in (("aborted", ABORTED), ("refused", REFUSED), ("interrupted", INTERRUPTED)):
            if self.headline.startswith(prefix):
                return word
        return str(self.status)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts of one tick, in the order of the experiment.

    ``expectations`` are those on the steady state until the first step, from then on those of the hypothesis. What may
    still be taken back is pending. ``timeline`` grows with the run: read it before the call that brings it returns.
    ``ends``: when maxDuration is over, in seconds since the epoch.
    """

    expectations: tuple[Verdict, ...]
    recovery: tuple[Verdict, ...]
    timeline: Timeline
    ends: float


def provisional(result: RunResult) -> RunResult:
    """A live result whose undecided verdicts are marked PENDING.

    While a proof is pending, inconclusive is not final. A recovery that holds may be lost again before the end.
    """
    unproven = any(step.proof_status is ProofStatus.UNPROVEN and step.begin is not None for step in result.steps)
    open_statuses = {Status.INCONCLUSIVE} if unproven else set()
    hypothesis = pending_if(result.hypothesis, open_statuses)
    recovery = pending_if(result.recovery, open_statuses | {Status.HELD})
    return structs.replace(result, hypothesis=hypothesis, recovery=recovery)


def pending_if(verdicts: Iterable[Verdict], statuses: Collection[Status]) -> tuple[Verdict, ...]:
    """The verdicts, with those in ``statuses`` marked as pending, because they are not final yet."""
    return tuple(replace(v, status=Status.PENDING) if v.status in statuses else v for v in verdicts)


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

    NO_RESULT: the run was killed, or continues on another machine.
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
        """Name of the inventory and the start of the cluster's UID, as ``staging 6f0c1a2b``."""
        known = " ".join(part for part in (self.inventory, self.cluster_uid[:SHORT_UID]) if part)
        return (known or "unknown") + (" (simulated)" if self.simulated else "")

    @property
    def cluster_key(self) -> str:
        """Equal in runs on one cluster, "" if unknown. Labs of one inventory are one cluster, whatever the seed is."""
        return f"{self.inventory} with {self.hosts} hosts" if self.simulated else self.cluster_uid

    def is_on(self, cluster: str) -> bool:
        """Whether ``cluster`` is the name of the inventory, or the start of the cluster's UID."""
        return bool(cluster) and (self.inventory == cluster or self.cluster_uid.startswith(cluster))
