"""Debts of other machines' runs: read from the cluster, and taken over."""

from __future__ import annotations

from pathlib import Path

from chaos.engine.ledger import Debt, debts
from chaos.model.errors import UsageError, bad_input
from chaos.model.inventory import Inventory
from chaos.session.locking import namespace
from chaos.session.opening import open_inventory
from chaos.store import rundir
from chaos.store.journal import Journal


def cluster_debts(inventory: Inventory) -> list[Debt]:
    """What all runs owe on that cluster. Raises NodefallError."""
    with open_inventory(inventory) as opened:
        return debts(opened.kube, namespace(opened))


def adopt(run: str, inventory: Inventory, reports: Path) -> Path:
    """A run directory with the journal that the cluster has of ``run``. Raises UsageError where it has none."""
    with open_inventory(inventory) as opened:
        debt = next((d for d in debts(opened.kube, namespace(opened)) if d.debtor.run == run), None)
        uid = opened.uid
    if debt is None:
        raise UsageError(
            f"no run {run!r}, neither in {reports} nor on this cluster", hint="nodefall undo --list --inventory FILE"
        )
    if debt.damaged:
        hint = f"see ConfigMap {debt.name}, and undo by hand what it says; then delete it"
        raise bad_input(f"the journal of {run} in the cluster", debt.damaged, hint)
    directory = rundir.create(reports, debt.debtor.experiment, debt.debtor.started)
    kept = inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    info = rundir.RunInfo(run, debt.debtor.experiment, debt.debtor.started, kept, cluster_uid=uid)
    rundir.save(directory, rundir.RUN, info)
    with Journal(directory) as journal:
        journal.mirror(True)
        for owed in sorted(debt.owed, key=lambda entry: entry.id):
            journal.intend(owed.step, owed.action, owed.node, owed.undo, owed.t)
    return directory
