"""Lists pending undos."""

from __future__ import annotations

import json
from pathlib import Path

import click

from chaos.app.undo.sources import pending_runs
from chaos.cli.output import echo
from chaos.cli.undo.json_keys import with_former_key
from chaos.cluster.replica import ReplicaEntry
from chaos.core.errors import Exit, NodefallError
from chaos.core.inventory import Inventory
from chaos.core.store.journal import NAME, read_pending
from chaos.core.store.journal_format import PendingUndo
from chaos.core.text import on_node
from chaos.documents.inventory import load_inventory


def list_pending(reports: Path, inventory: str | None, as_json: bool) -> int:
    """List the runs below ``reports`` with a pending undo or an unreadable journal; the exit code.

    With an inventory, the runs of any machine on that cluster.
    """
    scope = f"runs on the cluster of {inventory}" if inventory else f"runs in {reports}"
    rows, unreadable = _in_cluster(load_inventory(Path(inventory))) if inventory else _on_disk(reports)
    if as_json:
        click.echo(json.dumps(with_former_key({"pendingUndo": rows, "unreadable": unreadable})))
    for row in rows if not as_json else ():
        echo(on_node(f"{row['run']}: {row['step']} ({row['action']})", row["node"]))
    for message in unreadable:
        echo(f"error: {message}", err=True)
    if not rows and not unreadable:
        echo(f"no pending undo in the {scope}", err=True)
    return int(Exit.UNDO_PENDING if rows or unreadable else Exit.HELD)


def _in_cluster(inventory: Inventory) -> tuple[list[dict[str, str]], list[str]]:
    rows, unreadable = [], []
    for remote in pending_runs(inventory):
        if remote.error:
            unreadable.append(f"cannot read the journal of run {remote.identity.run} in the cluster: {remote.error}")
        rows += [_row(remote.identity.run, pending) for pending in remote.entries]
    return rows, unreadable


def _row(run: str, pending: PendingUndo | ReplicaEntry) -> dict[str, str]:
    return {"run": run, "step": pending.step, "action": pending.action, "node": pending.node}


def _on_disk(reports: Path) -> tuple[list[dict[str, str]], list[str]]:
    rows, unreadable = [], []
    for path in sorted(reports.glob(f"*/*/{NAME}")):
        try:
            pending = read_pending(path.parent)
        except NodefallError as error:
            unreadable.append(error.message)
            continue
        rows += [_row(str(path.parent), entry) for entry in pending]
    return rows, unreadable
