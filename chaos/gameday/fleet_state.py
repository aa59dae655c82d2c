"""A game day on many clusters at once, as a Job in each: the observed state of a cluster, and the state of the fleet.

That state is a day with one run for each cluster, named after the fleet. A run of it is a whole game day on its
cluster, and its ID is the name of the Job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from chaos.core.errors import Exit
from chaos.core.labels import JobView
from chaos.gameday.document import OnViolated
from chaos.gameday.fleet_document import DAY_SUFFIX, Fleet
from chaos.gameday.state import DayRun, DayState, DayStatus, RunKey, RunStatus, Verdict, exit_code, verdict_of
from chaos.gameday.transitions import StateConflict, finish, give_back, skip, skip_rest

UNKNOWN = "unknown"


class Phase(StrEnum):
    """Where a cluster of the fleet is.

    ``idle``: no Job, and the day has not begun. ``foreign``: something else is in the way of the day. ``starting``: a
    Job whose day has not begun. ``running``: the Job works on the day, or waits until it may begin. ``halted``,
    ``finished``: the day is, and no Job works on it. ``refused``: the Job has failed before the day began. ``stuck``:
    the day has begun and is neither finished nor halted, or a run of it was cut off, but no Job works on it.
    """

    UNKNOWN = "unknown"
    IDLE = "idle"
    FOREIGN = "foreign"
    STARTING = "starting"
    RUNNING = "running"
    HALTED = "halted"
    FINISHED = "finished"
    REFUSED = "refused"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read of a cluster. ``error``: why it could not be read; nothing else is known then.

    ``state``: of the last day of that name, whatever its ID. ``pending_undo``: runs whose undo is pending.
    """

    error: str = ""
    job: JobView | None = None
    state: DayState | None = None
    pending_undo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assessment:
    """``reason``: why it is so, "" where that is clear."""

    phase: Phase
    reason: str = ""

    @property
    def is_at_work(self) -> bool:
        """Whether the cluster may be under test now; it is assumed to be if that is unknown."""
        return self.phase in (Phase.STARTING, Phase.RUNNING, Phase.UNKNOWN)


def assess(observation: Observation, day: str, plan_hash: str) -> Assessment:
    """Where the cluster is on its way through the day with the ID ``day`` and this plan."""
    if observation.error:
        return Assessment(Phase.UNKNOWN, observation.error)
    if problem := _foreign(observation, day, plan_hash):
        return Assessment(Phase.FOREIGN, problem)
    state = day_of(observation, day)
    if state is None or not state.has_begun:
        return _before_the_day(observation.job, state)
    return _during_the_day(observation, state)


def _during_the_day(observation: Observation, state: DayState) -> Assessment:
    job = observation.job
    if job is not None and job.is_active:
        return Assessment(Phase.RUNNING, progress_of(state))
    if state.status is DayStatus.FINISHED:
        return Assessment(Phase.FINISHED)
    is_cut = any(run.status is RunStatus.RUNNING for run in state.runs)  # its undo may be pending
    if state.halt and not is_cut:
        return Assessment(Phase.HALTED, f"halted by {state.halt.by}: {state.halt.reason}".removesuffix(": "))
    why = f"its Job has ended: {job.reason}" if job else "it has no Job"
    pending = ", ".join(observation.pending_undo)
    undo = f"; pending undo: {pending}" if pending else ""
    return Assessment(Phase.STUCK, f"{why}{undo}")


def day_of(observation: Observation, day: str) -> DayState | None:
    """The state of exactly this day, None if the cluster has none."""
    state = observation.state
    return state if state is not None and state.day == day else None


def day_verdict(state: DayState) -> Verdict:
    """The verdict of a finished day; inconclusive if any of its entries was not decided."""
    return verdict_of(exit_code(state))


def progress_of(state: DayState) -> str:
    """What the day does now: ``1 of 5 done, cordon (1) is running``."""
    done = sum(not run.is_open for run in state.runs)
    running = next((run for run in state.runs if run.status is RunStatus.RUNNING), None)
    parts = [f"{done} of {len(state.runs)} done"]
    if running:
        parts.append(f"{running.key} is running")
    elif state.waiting:
        parts.append(f"waiting for {state.waiting.what}: {state.waiting.reason}")
    if state.halt:
        parts.append(f"halted by {state.halt.by}")
    return ", ".join(parts)


def _before_the_day(job: JobView | None, state: DayState | None) -> Assessment:
    if job is None:
        return Assessment(Phase.IDLE)
    if job.is_active:
        if state is not None and state.waiting:  # for its window, a gate or a pause, maybe for hours
            return Assessment(Phase.RUNNING, progress_of(state))
        return Assessment(Phase.STARTING, job.reason)
    if state is not None and state.halt:
        return Assessment(Phase.HALTED, f"halted by {state.halt.by}, before it began")
    return Assessment(Phase.REFUSED, job.reason or "its Job has ended without having begun the day")


def _foreign(observation: Observation, day: str, plan_hash: str) -> str:
    """What is in the way of the day, "" for nothing."""
    job, state = observation.job, observation.state
    if job is not None and (job.day, job.plan_hash) != (day, plan_hash):
        return f"its Job is for day {job.day}, plan {job.plan_hash[:12]}"
    if state is None:
        return ""
    if state.day != day:
        is_over = state.status is DayStatus.FINISHED or not state.has_begun
        return "" if is_over else f"day {state.day} of {state.gameday} is not finished there"
    if state.has_begun and state.plan_hash != plan_hash:
        return f"day {day} has begun there with another plan, {state.plan_hash[:12]}"
    return ""


def fleet_exit_code(state: DayState, observations: Iterable[Observation]) -> Exit:
    """The worst one: 3 for a pending undo anywhere, then as that of a day whose entries are the clusters."""
    seen = list(observations)
    if any(each.pending_undo for each in seen):
        return Exit.UNDO_PENDING
    days = (day_of(each, state.day) for each in seen)
    if any(day is not None and exit_code(day) is Exit.VIOLATED for day in days):
        return Exit.VIOLATED
    return exit_code(state)


def matrix(state: DayState, observations: Mapping[str, Observation]) -> list[tuple[str, ...]]:
    """A row for each cluster and a column for each run of the day, with a head; a cell is a verdict or a status.

    What a cluster without a state of this day has is what the fleet knows of it: skipped, pending or unknown. The
    verdict of a whole day says nothing of its single entries.
    """
    days = {name: day_of(each, state.day) for name, each in observations.items()}
    columns = list(
        dict.fromkeys((run.key.entry, run.key.repetition) for day in days.values() if day for run in day.runs)
    )
    repeated = {entry for entry, repetition in columns if repetition > 1}
    head = tuple(f"{entry} ({number})" if entry in repeated else entry for entry, number in columns)
    rows = [("cluster", "status", *head)]
    for run in state.runs:
        name = run.key.cluster
        status = UNKNOWN if observations[name].error and run.is_open else run.verdict or str(run.status)
        unread = UNKNOWN if run.status is RunStatus.DONE else status
        rows.append((name, status, *_cells(days[name], columns, unread)))
    return rows


def _cells(day: DayState | None, columns: list[tuple[str, int]], status: str) -> list[str]:
    if day is None:
        return [status] * len(columns)
    runs = {(run.key.entry, run.key.repetition): run for run in day.runs}
    return [runs[key].verdict or str(runs[key].status) if key in runs else "" for key in columns]


def fleet_day_name(fleet: str) -> str:
    """The name of the fleet's day among the game days of its home."""
    return f"{fleet}{DAY_SUFFIX}"


def new_fleet_state(fleet: Fleet, gameday: str, day: str, plan_hash: str, now: float) -> DayState:
    """A fleet of which nothing has begun, without a holder."""
    spec = fleet.spec
    on_violated: OnViolated = "continue" if spec.on_violated == "continue" else "stop"
    return DayState(
        day=day,
        gameday=fleet_day_name(fleet.metadata.name),
        plan_hash=plan_hash,
        seed=0,
        created=now,
        order="by-cluster",
        parallel=spec.max_clusters,
        holder="",
        epoch=0,
        runs=tuple(DayRun(RunKey(gameday, cluster.name, 1), 0, on_violated) for cluster in spec.clusters),
    )


def end_cluster(state: DayState, key: RunKey, verdict: Verdict, reason: str, epoch: int, now: float) -> DayState:
    """The day of a cluster is over. After a violation, or a halt of that cluster alone, the rest may be skipped."""
    run = find_run(state, key)
    state = finish(state, key, run.run, verdict, epoch, now, reason)
    if verdict == "interrupted" and run.on_violated == "stop":
        return skip_rest(state, f"stopped: {key} was halted", epoch, now)
    return state


def leave_out(state: DayState, key: RunKey, reason: str, epoch: int, now: float) -> DayState:
    """Nothing was run on a cluster, and nothing will be."""
    run = find_run(state, key)
    if run.run:
        state = give_back(state, key, run.run, epoch)
    return skip(state, key, reason, epoch, now)


def find_run(state: DayState, key: RunKey) -> DayRun:
    """The run of a cluster. Raises StateConflict if the fleet has no such cluster."""
    run = state.find(key)
    if run is None:
        raise StateConflict(f"the fleet has no cluster {key.cluster}")
    return run
