"""How a fleet ended, or stands: as an exit code, and as a matrix of clusters and entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chaos.core.errors import Exit
from chaos.gameday.fleet.observation import Observation, day_of
from chaos.gameday.outcome import exit_code
from chaos.gameday.state import DayState, RunStatus

UNKNOWN = "unknown"


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
