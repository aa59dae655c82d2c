"""Finishes and lists pending undos."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from chaos.app.cluster_lock import hold_lock, hold_machine_lock, lock_namespace
from chaos.app.connect import connect_cluster
from chaos.app.logs import run_log
from chaos.app.pending_undo_guard import guard_pending_undo
from chaos.cli.output import echo
from chaos.cli.run.progress import BestEffortProgress, make_progress
from chaos.cli.undo.remote_undo import import_run, pending_runs
from chaos.engine.rollback import UndoRules, roll_back
from chaos.kube.journal_mirror import JournalMirror, RunIdentity
from chaos.load.inventory import load_inventory
from chaos.model.errors import Exit, NodefallError, Refused, UndoPending, UsageError, bad_input
from chaos.model.inventory import Inventory
from chaos.model.result import UndoResult
from chaos.model.text import on_node
from chaos.store import run_directory
from chaos.store.journal import NAME, Journal, PendingUndo, entry_key, read_pending


def list_pending(reports: Path, inventory: str | None, as_json: bool) -> int:
    """List the runs below ``reports`` with a pending undo or an unreadable journal; the exit code.

    With an inventory, the runs of any machine on that cluster.
    """
    scope = f"runs on the cluster of {inventory}" if inventory else f"runs in {reports}"
    rows, unreadable = _in_cluster(load_inventory(Path(inventory))) if inventory else _on_disk(reports)
    if as_json:
        click.echo(json.dumps(_with_former_key({"pendingUndo": rows, "unreadable": unreadable})))
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
        rows += [_row(remote.identity.run, pending) for pending in remote.pending if pending.undo.proof]
    return rows, unreadable


def _row(run: str, pending: PendingUndo) -> dict[str, str]:
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


def undo(name: str, inventory: str | None, reports: Path, as_json: bool) -> int:
    """Finish the pending undo of one run; the exit code. Raises UndoPending if it could not be attempted."""
    directory = _find(reports, name, inventory)
    with run_log() as log, guard_pending_undo(directory), Journal(directory) as journal:
        log.open(directory)
        results: list[UndoResult] = []
        if journal.pending() or journal.has_replica:
            info = run_directory.load(directory, run_directory.RUN, run_directory.RunInfo)
            try:
                results = _run_undo(journal, info, _inventory(directory, info, inventory))
            except NodefallError as error:
                if not _is_lab_gone(info, inventory):
                    raise
                echo(f"the simulated cluster of this run no longer exists ({error.message})", err=True)
                for entry in journal.pending():
                    journal.mark_undone(entry, "its simulated cluster no longer exists")
                journal.record_replica(False)
        pending = [{"step": o.step, "action": o.action, "node": o.node} for o in journal.pending()]
    return _echo_results(directory, results, pending, as_json)


def _echo_results(directory: Path, results: list[UndoResult], pending: list[dict[str, str]], as_json: bool) -> int:
    if as_json:
        undone = [{"step": r.step, "node": r.node, "proven": r.proven, "because": r.because} for r in results]
        click.echo(json.dumps(_with_former_key({"run": str(directory), "undone": undone, "pendingUndo": pending})))
    for entry in pending:
        echo(on_node(f"pending undo: {entry['step']} ({entry['action']})", entry["node"]), err=True)
    if not pending:
        echo(f"no pending undo in {directory}", err=True)
    return int(Exit.UNDO_PENDING if pending else Exit.HELD)


def _with_former_key(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the key that 0.1 had for ``pendingUndo``, too."""
    return document | {"owed": document["pendingUndo"]}  # words: keep


def _inventory(directory: Path, info: run_directory.RunInfo, inventory_file: str | None) -> Inventory:
    if inventory_file:
        return load_inventory(Path(inventory_file))
    try:
        return Inventory.model_validate(info.inventory)
    except ValidationError as error:
        raise bad_input(
            str(directory / run_directory.RUN),
            f"invalid inventory: {error.errors()[0]['msg']}",
            "give --inventory",
        ) from error


def _find(reports: Path, name: str, inventory: str | None) -> Path:
    """The run directory, created from the cluster's copy of the journal if the run was on another machine."""
    try:
        return run_directory.find(reports, name)
    except UsageError:
        if inventory is None or Path(name).name != name:
            raise
        return import_run(name, load_inventory(Path(inventory)), reports)


def _run_undo(journal: Journal, info: run_directory.RunInfo, inventory: Inventory) -> list[UndoResult]:
    progress = BestEffortProgress(make_progress(sys.stderr))
    try:
        with connect_cluster(inventory) as connection, connection.clock.participant():
            if info.cluster_uid and connection.uid != info.cluster_uid:
                raise Refused(
                    f"wrong cluster: the run was on UID {info.cluster_uid}, but the server reports {connection.uid}",
                    hint="give the inventory of the run with --inventory",
                )
            with (
                hold_machine_lock(connection),
                hold_lock(connection, info.run, progress.note, wait_for_holder=True) as lock,
            ):
                identity = RunIdentity(info.run, info.experiment, info.started)
                mirror = JournalMirror(connection.kube, lock_namespace(connection), identity, journal)
                # A run of another machine went on while this process waited for the lock.
                published = mirror.import_entries(add=not info.by) if journal.has_replica else None
                rules = UndoRules(
                    may_be_undone=lambda entry: published is not None and entry_key(entry) not in published,
                    blocked=lock.blocked,
                )
                results = list(roll_back(journal, connection.hosts, connection.clock, progress, rules))
                if lock.blocked():
                    raise UndoPending(f"the undo was stopped: {lock.blocked()}", hint="run nodefall undo again")
                if unsettled := mirror.reconcile():
                    raise UndoPending(
                        f"undone, but not recorded in the cluster: {unsettled}", hint="run nodefall undo again"
                    )
                return results
    finally:
        progress.close()


def _is_lab_gone(info: run_directory.RunInfo, inventory_file: str | None) -> bool:
    """Whether the run was in a lab started for it, whose process has ended: there is nothing left to undo."""
    if info.lab_pid is None or inventory_file:
        return False
    try:
        command = Path(f"/proc/{info.lab_pid}/cmdline").read_bytes()
    except FileNotFoundError:
        try:
            os.kill(info.lab_pid, 0)
        except ProcessLookupError:
            return True
        return False
    return b"chaos.lab" not in command
