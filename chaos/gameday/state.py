"""What is stored of a game day while it runs, and how it ended: as an exit code, and in words.

:mod:`chaos.gameday.transitions` has what may change it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal, get_args

from msgspec import Struct

from chaos.core.errors import Exit
from chaos.gameday.document import MAX_SEED, GameDay, GameDayEntry, OnViolated
from chaos.gameday.events import Undelivered

Verdict = Literal["held", "violated", "inconclusive", "interrupted"]
Order = Literal["by-entry", "by-cluster"]
MAX_IMPAIRED = 200  # nodes
DAY_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"  # of the names of a Job, and of a directory
_VERDICTS: dict[int, Verdict] = {Exit.HELD: "held", Exit.VIOLATED: "violated"}


def entry_seeds(entry: GameDayEntry, name: str, base: int) -> tuple[int, ...]:
    """One per repetition: from the entry's own seed, else from ``base``, the seed of the day, and the name."""
    if entry.seed is not None:
        return tuple((entry.seed + number) % (MAX_SEED + 1) for number in range(entry.repeat))
    return tuple(_derived(f"{base}/{name}/{number}") for number in range(entry.repeat))


def _derived(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"


RUN_WORDS = (*get_args(Verdict), *(str(each) for each in RunStatus if each is not RunStatus.DONE))


class DayStatus(StrEnum):
    RUNNING = "running"
    HALTED = "halted"
    FINISHED = "finished"


class RunKey(Struct, frozen=True):
    """A run of the day. ``repetition`` counts from 1; ``cluster`` is "" for that of the command line."""

    entry: str
    cluster: str
    repetition: int

    def __str__(self) -> str:
        return f"{self.entry} ({self.repetition})" + (f" on {self.cluster}" if self.cluster else "")


class DayRun(Struct, frozen=True, omit_defaults=True):
    """A run of the day, of which ``run`` is the ID from its start on.

    ``may_have_injected``: stored before the first step, so that without it no fault was injected. ``attempts``: begins;
    more than one only of runs without a fault. ``gates_held``: when all its gates held, so that it could begin. Times
    are seconds since the epoch.
    """

    key: RunKey
    seed: int
    on_violated: OnViolated
    status: RunStatus = RunStatus.PENDING
    run: str = ""
    may_have_injected: bool = False
    attempts: int = 0
    verdict: Verdict | None = None
    reason: str = ""
    begun: float | None = None
    ended: float | None = None
    gates_held: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether something of it is still to be done."""
        return self.status in (RunStatus.PENDING, RunStatus.RUNNING)


class Halt(Struct, frozen=True, omit_defaults=True):
    """Who stopped the day; ``resumed_by`` is who let it continue and ``resumed_because`` why, "" while it is halted."""

    by: str
    at: float
    reason: str
    resumed_by: str = ""
    resumed_at: float | None = None
    resumed_because: str = ""


class Approval(Struct, frozen=True, omit_defaults=True):
    """``plan_hash``: of what was approved. ``entry``: only this one, "" for the whole day. ``via``: login@machine."""

    by: str
    at: float
    plan_hash: str
    entry: str = ""
    via: str = ""


class Waiting(Struct, frozen=True, omit_defaults=True):
    """What the day waits for and why, since and at most until when. ``earlier``: other reasons before this one."""

    what: str
    reason: str
    since: float
    until: float | None = None
    earlier: tuple[str, ...] = ()


class PastWait(Struct, frozen=True, omit_defaults=True):
    """A wait that is over. ``ended``: None if its process ended first. ``reasons``: the first ones and the last."""

    what: str
    reasons: tuple[str, ...]
    since: float
    ended: float | None = None


class DayState(Struct, frozen=True, omit_defaults=True):
    """A day. ``runs`` are in the order in which they begin.

    ``holder`` works on the day; each new one raises ``epoch``, and what a former one writes is refused. ``impaired``:
    nodes that were not as they should be before the day, so that no pause waits for them. ``waits``: the last ones that
    are over. ``undelivered``: the last notifications that did not reach their receiver.
    """

    day: str
    gameday: str
    plan_hash: str
    seed: int
    created: float
    order: Order
    parallel: int
    holder: str
    epoch: int
    runs: tuple[DayRun, ...]
    halts: tuple[Halt, ...] = ()
    approvals: tuple[Approval, ...] = ()
    waiting: Waiting | None = None
    waits: tuple[PastWait, ...] = ()
    impaired: tuple[str, ...] = ()
    undelivered: tuple[Undelivered, ...] = ()
    version: int = 1

    @property
    def halt(self) -> Halt | None:
        """The halt that is in force."""
        last = self.halts[-1] if self.halts else None
        return last if last and not last.resumed_by else None

    @property
    def status(self) -> DayStatus:
        if not any(run.is_open for run in self.runs):
            return DayStatus.FINISHED
        return DayStatus.HALTED if self.halt else DayStatus.RUNNING

    def find(self, key: RunKey) -> DayRun | None:
        return next((run for run in self.runs if run.key == key), None)

    @property
    def has_begun(self) -> bool:
        """Whether any run has begun, or was skipped."""
        return any(run.status is not RunStatus.PENDING or run.attempts for run in self.runs)

    def is_approved(self, by: Iterable[str], entry: str = "") -> bool:
        """Whether one of these persons has approved the plan of this day, as a whole or of this entry."""
        persons = set(by)
        return any(
            approval.by in persons and approval.plan_hash == self.plan_hash and approval.entry in ("", entry)
            for approval in self.approvals
        )


def day_runs(day: GameDay, names: Sequence[str], seed: int) -> tuple[DayRun, ...]:
    """All runs of a day in their order; ``names`` are those of its entries, ``seed`` is that of the day."""
    spec = day.spec
    runs = [
        DayRun(RunKey(name, cluster, number), run_seed, entry.on_violated or spec.on_violated)
        for entry, name in zip(spec.entries, names, strict=True)
        for number, run_seed in enumerate(entry_seeds(entry, name, seed), 1)
        for cluster in entry.clusters or [each.name for each in spec.clusters] or [""]
    ]
    if spec.order == "by-cluster":
        order = [cluster.name for cluster in spec.clusters] or [""]
        runs.sort(key=lambda run: order.index(run.key.cluster))
    return tuple(runs)


def runs_on(day: GameDay, names: Sequence[str], seed: int, cluster: str) -> tuple[DayRun, ...]:
    """The runs of a day on one of its clusters; on a cluster that it does not list (""), all entries once."""
    if cluster:
        return tuple(run for run in day_runs(day, names, seed) if run.key.cluster == cluster)
    spec = day.spec
    return tuple(
        DayRun(RunKey(name, "", number), run_seed, entry.on_violated or spec.on_violated)
        for entry, name in zip(spec.entries, names, strict=True)
        for number, run_seed in enumerate(entry_seeds(entry, name, seed), 1)
    )


def startable(state: DayState) -> tuple[RunKey, ...]:
    """The runs that may begin now: none on a halted day, never two on one cluster, ``parallel`` clusters at once."""
    if state.halt:
        return ()
    heads: dict[str, DayRun] = {}  # the first open run of each cluster
    for run in state.runs:
        if run.is_open:
            heads.setdefault(run.key.cluster, run)
    if not heads:
        return ()
    return _of_first_round(state, heads) if state.order == "by-entry" else _of_first_clusters(state, heads)


def _of_first_round(state: DayState, heads: dict[str, DayRun]) -> tuple[RunKey, ...]:
    """Of the entry and repetition that some cluster has not ended yet, as many as are free."""
    first = next(run.key for run in state.runs if run.is_open)
    free = state.parallel - sum(run.status is RunStatus.RUNNING for run in state.runs)
    keys = [run.key for run in heads.values() if run.status is RunStatus.PENDING]
    in_round = [key for key in keys if (key.entry, key.repetition) == (first.entry, first.repetition)]
    return tuple(in_round[: max(free, 0)])


def _of_first_clusters(state: DayState, heads: dict[str, DayRun]) -> tuple[RunKey, ...]:
    """Of the clusters that have begun and not ended yet, and of as many others as are free."""
    begun = {run.key.cluster for run in state.runs if run.begun is not None} & heads.keys()
    others = [cluster for cluster in heads if cluster not in begun]
    admitted = begun.union(others[: max(state.parallel - len(begun), 0)])
    pending = (run for run in heads.values() if run.status is RunStatus.PENDING)
    return tuple(run.key for run in pending if run.key.cluster in admitted)


def exit_code(state: DayState) -> Exit:
    """0: every run held; 1: one was violated; 4: none took place; 2: anything else, also while the day goes on."""
    verdicts = {run.verdict for run in state.runs if run.status is RunStatus.DONE}
    if "violated" in verdicts:
        return Exit.VIOLATED
    if state.status is not DayStatus.FINISHED:
        return Exit.INCONCLUSIVE
    if not verdicts:
        return Exit.REFUSED
    is_whole = all(run.status is RunStatus.DONE for run in state.runs)
    return Exit.HELD if is_whole and verdicts == {"held"} else Exit.INCONCLUSIVE


def verdict_of(code: int) -> Verdict:
    """The verdict of a run or a day with this exit code; what is neither held nor violated is not decided."""
    return _VERDICTS.get(code, "inconclusive")


def describe(state: DayState) -> str:
    """One line: ``day 2026-11-23 of monthly finished: 3 held, 1 violated, 1 skipped``."""
    counts = Counter(run.verdict or str(run.status) for run in state.runs)
    shown = ("held", "violated", "inconclusive", "interrupted", "skipped", "running", "pending")
    parts = [f"{counts[word]} {word}" for word in shown if counts[word]]
    status = "is running" if state.status is DayStatus.RUNNING else str(state.status)
    return f"day {state.day} of {state.gameday} {status}: {', '.join(parts)}"
