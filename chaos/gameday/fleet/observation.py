"""What is seen of a cluster of the fleet: its Job, and the state of its day."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chaos.core.job import JobView
from chaos.gameday import outcome
from chaos.gameday.state import DayState, DayStatus, RunStatus, Verdict


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


def verdict_of(state: DayState) -> Verdict:
    """The verdict of a finished day; inconclusive if any of its entries was not decided."""
    return outcome.verdict_of(outcome.exit_code(state))


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
