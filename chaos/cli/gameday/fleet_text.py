"""A fleet in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from chaos.cli.gameday.day_text import render_halts
from chaos.core.text import align_columns, printable
from chaos.gameday.fleet_state import Assessment, Observation, Phase, day_of, fleet_exit_code, matrix
from chaos.gameday.state import DayState, describe, exit_code

Seen = Mapping[str, tuple[Assessment, Observation]]


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
