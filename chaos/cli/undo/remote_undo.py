"""Debts of other machines' runs: read from the cluster, and taken over."""

from __future__ import annotations

from pathlib import Path

from chaos.app.cluster_lock import lock_namespace
from chaos.app.connect import connect_cluster
from chaos.kube import journal_mirror
from chaos.kube.journal_mirror import PendingRun
from chaos.model.errors import UsageError, bad_input
from chaos.model.inventory import Inventory
from chaos.store import run_directory
from chaos.store.journal import Journal


def pending_runs(inventory: Inventory) -> list[PendingRun]:
    """What all runs owe on that cluster. Raises NodefallError."""
    with connect_cluster(inventory) as opened:
        return journal_mirror.pending_runs(opened.kube, lock_namespace(opened))


def import_run(run: str, inventory: Inventory, reports: Path) -> Path:
    """A run directory with the journal that the cluster has of ``run``. Raises UsageError where it has none."""
    with connect_cluster(inventory) as opened:
        debt = next(
            (d for d in journal_mirror.pending_runs(opened.kube, lock_namespace(opened)) if d.identity.run == run), None
        )
        uid = opened.uid
    if debt is None:
        raise UsageError(
            f"no run {run!r}, neither in {reports} nor on this cluster", hint="nodefall undo --list --inventory FILE"
        )
    if debt.error:
        hint = f"see ConfigMap {debt.name}, and undo by hand what it says; then delete it"
        raise bad_input(f"the journal of {run} in the cluster", debt.error, hint)
    directory = run_directory.create(reports, debt.identity.experiment, debt.identity.started)
    kept = inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    info = run_directory.RunInfo(run, debt.identity.experiment, debt.identity.started, kept, cluster_uid=uid)
    run_directory.save(directory, run_directory.RUN, info)
    with Journal(directory) as journal:
        journal.record_replica(True)
        for owed in sorted(debt.pending, key=lambda entry: entry.id):
            journal.record_intent(owed.step, owed.action, owed.node, owed.undo, owed.t)
    return directory
