"""Runs of other machines: their journals are read from the cluster."""

from __future__ import annotations

from pathlib import Path

from chaos.app.connect import connect_cluster
from chaos.cluster import journal_mirror
from chaos.cluster.replica import PendingRun
from chaos.core.errors import Refused, UsageError, bad_input
from chaos.core.inventory import Inventory
from chaos.core.store import run_directory
from chaos.core.store.journal import Journal
from chaos.engine.connection import cluster_identity, lock_namespace


def pending_runs(inventory: Inventory) -> list[PendingRun]:
    """The recorded runs of a cluster. Raises NodefallError."""
    with connect_cluster(inventory) as connection:
        return journal_mirror.pending_runs(connection.kube, lock_namespace(connection))


def import_run(run: str, inventory: Inventory, reports: Path) -> Path:
    """A run directory for a journal in the cluster, whose entries :func:`finish_undo` adds.

    Raises UsageError if there is none.
    """
    with connect_cluster(inventory) as connection:
        runs = journal_mirror.pending_runs(connection.kube, lock_namespace(connection))
        pending = next((each for each in runs if each.identity.run == run), None)
        uid, cluster = connection.uid, cluster_identity(connection)
    if pending is None:
        raise UsageError(
            f"unknown run {run!r}: it is neither in {reports} nor on this cluster",
            hint="list runs with nodefall undo --list --inventory FILE",
        )
    if pending.error:
        hint = f"undo the steps of ConfigMap {pending.name} by hand, then delete it"
        raise bad_input(f"the journal of {run} in the cluster", pending.error, hint)
    stored = inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    info = run_directory.RunInfo(
        run, pending.identity.experiment, pending.identity.started, stored, cluster_uid=uid, cluster=cluster
    )
    return create_directory(info, reports)


def create_directory(info: run_directory.RunInfo, reports: Path) -> Path:
    """A run directory with an empty journal, of which the cluster has a copy. Raises Refused."""
    directory = run_directory.create(reports, info.experiment, info.started)
    try:
        run_directory.save(directory, run_directory.RUN, info)
    except OSError as error:
        hint = "choose another disk with --reports DIRECTORY; nothing is done without a journal"
        raise Refused(f"cannot write {directory / run_directory.RUN}: {error.strerror}", hint=hint) from error
    with Journal(directory) as journal:
        journal.record_replica(True)
    return directory
