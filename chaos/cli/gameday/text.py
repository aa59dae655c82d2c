"""The state of a game day and of a fleet in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from chaos.core.duration import format_duration, timestamp
from chaos.core.text import align_columns, printable
from chaos.gameday.fleet_state import Assessment, Observation, Phase, day_of, fleet_exit_code, matrix
from chaos.gameday.state import DayRun, DayState, describe, exit_code

_HEAD = ("entry", "status", "begun", "took", "run", "reason")
Seen = Mapping[str, tuple[Assessment, Observation]]


def render(state: DayState) -> Iterator[str]:
    """A line about the day, a table of its runs, then who has halted and approved it and what it waits for."""
    yield describe(state)
    yield f"plan {state.plan_hash}, seed {state.seed}"
    yield from align_columns([_HEAD, *map(_row, state.runs)])
    yield from render_halts(state)
    for approval in state.approvals:
        what = f"entry {approval.entry}" if approval.entry else "the day"
        stale = "" if approval.plan_hash == state.plan_hash else ", which does not count: of another plan"
        via = f" ({approval.via})" if approval.via else ""
        yield f"approved {timestamp(approval.at)} by {approval.by}{via}: {what}, plan {approval.plan_hash[:12]}{stale}"
    if state.waiting:
        until = f" until {timestamp(state.waiting.until)}" if state.waiting.until is not None else ""
        yield f"waiting since {timestamp(state.waiting.since)}{until} for {state.waiting.what}: {state.waiting.reason}"


def render_halts(state: DayState) -> Iterator[str]:
    """Who has halted the day and let it go on."""
    for halt in state.halts:
        reason = f": {halt.reason}" if halt.reason else ""
        yield printable(f"halted {timestamp(halt.at)} by {halt.by}{reason}")
        if halt.resumed_at is not None:
            yield printable(f"resumed {timestamp(halt.resumed_at)} by {halt.resumed_by}: {halt.resumed_because}")


def to_document(state: DayState) -> dict[str, Any]:
    """The state as JSON, with its status and its exit code."""
    document: dict[str, Any] = msgspec.to_builtins(state)
    return document | {"status": str(state.status), "exit_code": int(exit_code(state))}


def _row(run: DayRun) -> tuple[str, ...]:
    took = format_duration(round(run.ended - run.begun)) if run.begun is not None and run.ended is not None else ""
    begun = timestamp(run.begun) if run.begun is not None else ""
    return (str(run.key), run.verdict or str(run.status), begun, took, run.run, printable(run.reason))


def render_fleet(state: DayState, seen: Seen) -> Iterator[str]:
    """A line about the fleet, the matrix of clusters and entries, and what there is to say about single clusters."""
    yield describe(state)
    yield from align_columns(matrix(state, {name: observation for name, (_, observation) in seen.items()}))
    for run in state.runs:
        assessment, observation = seen[run.key.cluster]
        if about := list(_about(run.reason, assessment, observation)):
            yield printable(f"{run.key.cluster}: {'; '.join(about)}")
    yield from render_halts(state)


def fleet_document(state: DayState, seen: Seen) -> dict[str, Any]:
    """The fleet as JSON: its own state, and for each cluster what was read of it."""
    observations = [observation for _, observation in seen.values()]
    document: dict[str, Any] = msgspec.to_builtins(state)
    clusters = {name: _cluster(state, *each) for name, each in seen.items()}
    code = int(fleet_exit_code(state, observations))
    return document | {"status": str(state.status), "exit_code": code, "clusters": clusters}


def _cluster(state: DayState, assessment: Assessment, observation: Observation) -> dict[str, Any]:
    day = day_of(observation, state.day)
    return {
        "phase": str(assessment.phase),
        "reason": assessment.reason,
        "pending_undo": list(observation.pending_undo),
        "exit_code": None if day is None else int(exit_code(day)),
        "day": None if day is None else msgspec.to_builtins(day),
    }


def _about(reason: str, assessment: Assessment, observation: Observation) -> Iterator[str]:
    if reason:
        yield reason
    if assessment.phase not in (Phase.IDLE, Phase.FINISHED) and assessment.reason:
        yield f"{assessment.phase}, {assessment.reason}"
    if observation.pending_undo:
        yield f"pending undo of {', '.join(observation.pending_undo)}"
