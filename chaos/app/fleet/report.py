"""The report of a fleet's day: a record of each cluster, from what was read of it, for the usual report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from chaos.app.day.report import record_of, store_record
from chaos.app.fleet.loading import LoadedCluster, LoadedFleet
from chaos.app.gameday import cluster_name, current_time
from chaos.gameday.fleet_state import Assessment, Observation, day_of
from chaos.gameday.state import DayRun, DayState, RunStatus, runs_on


def store_records(
    fleet: LoadedFleet, state: DayState, seen: Mapping[str, tuple[Assessment, Observation]], reports: Path
) -> Path:
    """Write a record for each cluster; the directory of the day. Raises NodefallError, OSError.

    ``state``: that of the fleet. A cluster that could not be read is in the report, with runs that are pending.
    """
    directory = reports
    for cluster in fleet.clusters:
        assessment, observation = seen[cluster.name]
        day = day_of(observation, state.day) or _unread(fleet, cluster, state, assessment)
        record = record_of(fleet.day, cluster.name, day, current_time().timestamp())
        simulated = bool(cluster.inventory.cluster and cluster.inventory.cluster.simulated)
        directory = store_record(reports, replace(record, simulated=simulated))
    return directory


def _unread(fleet: LoadedFleet, cluster: LoadedCluster, state: DayState, assessment: Assessment) -> DayState:
    """The day on a cluster of which there is no state: skipped if the fleet has left it out, else still open."""
    own = next(run for run in state.runs if run.key.cluster == cluster.name)
    is_over = own.status is RunStatus.SKIPPED
    reason = own.reason or f"{assessment.phase}: {assessment.reason}".removesuffix(": ")

    def change(run: DayRun) -> DayRun:
        if is_over:
            return replace(run, status=RunStatus.SKIPPED, reason=reason, ended=own.ended)
        return replace(run, reason=reason)

    day = fleet.day.document
    names = [entry.name for entry in fleet.day.entries]
    runs = runs_on(day, names, 0, cluster_name(fleet.day, cluster.path))
    return replace(
        state,
        gameday=day.metadata.name,
        plan_hash=fleet.day.hash,
        runs=tuple(map(change, runs)),
        halts=(),
        parallel=1,
        order="by-entry",
    )
