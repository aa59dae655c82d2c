"""The work behind ``nodefall undo``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click
from pydantic import ValidationError

from chaos.app.cluster_lock import hold_lock, lock_namespace
from chaos.app.connect import connect_cluster
from chaos.app.pending_undo_guard import guard_pending_undo
from chaos.cli.output import echo
from chaos.cli.run.progress import BestEffortProgress, make_progress
from chaos.cli.undo.remote_undo import import_run, pending_runs
from chaos.engine.rollback import roll_back
from chaos.kube.journal_mirror import JournalMirror, RunIdentity
from chaos.load.inventory import load_inventory
from chaos.model.errors import Exit, NodefallError, Refused, UndoPending, UsageError, bad_input
from chaos.model.inventory import Inventory
from chaos.model.result import UndoResult
from chaos.model.text import on_node
from chaos.store import run_directory
from chaos.store.journal import NAME, Journal, PendingUndo, read_pending
from chaos.store.process_lock import exclusive_lock


def list_pending(reports: Path, inventory: str | None, as_json: bool) -> int:
    """Every run below ``reports`` that owes something; one whose journal cannot be read may owe anything.

    With an inventory, every run of any machine on that cluster.
    """
    where = f"runs on the cluster of {inventory}" if inventory else f"runs in {reports}"
    rows, unread = _in_cluster(load_inventory(Path(inventory))) if inventory else _on_disk(reports)
    if as_json:
        click.echo(json.dumps({"owed": rows, "unreadable": unread}))
    for row in rows if not as_json else ():
        echo(on_node(f"{row['run']}: {row['step']} ({row['action']})", row["node"]))
    for message in unread:
        echo(f"error: {message}", err=True)
    if not rows and not unread:
        echo(f"nothing is owed by the {where}", err=True)
    return int(Exit.UNDO_PENDING if rows or unread else Exit.HELD)


def _in_cluster(inventory: Inventory) -> tuple[list[dict[str, str]], list[str]]:
    rows, unread = [], []
    for debt in pending_runs(inventory):
        if debt.error:
            unread.append(f"the journal of run {debt.identity.run} in the cluster cannot be read: {debt.error}")
        rows += [_row(debt.identity.run, owed) for owed in debt.pending if owed.undo.proof]
    return rows, unread


def _row(run: str, owed: PendingUndo) -> dict[str, str]:
    return {"run": run, "step": owed.step, "action": owed.action, "node": owed.node}


def _on_disk(reports: Path) -> tuple[list[dict[str, str]], list[str]]:
    rows, unread = [], []
    for path in sorted(reports.glob(f"*/*/{NAME}")):
        try:
            owed = read_pending(path.parent)
        except NodefallError as error:
            unread.append(error.message)
            continue
        rows += [_row(str(path.parent), entry) for entry in owed]
    return rows, unread


def undo(name: str, inventory: str | None, reports: Path, as_json: bool) -> int:
    """Replay what one run owes. Raises UndoOwed while anything is owed that could not even be tried."""
    directory = _find(reports, name, inventory)
    with guard_pending_undo(directory), Journal(directory) as journal:
        results: list[UndoResult] = []
        if journal.pending() or journal.has_replica:
            info = run_directory.load(directory, run_directory.RUN, run_directory.RunInfo)
            try:
                results = _run_undo(journal, info, _inventory(directory, info, inventory))
            except NodefallError as error:
                if not _is_lab_gone(info, inventory):
                    raise
                echo(f"the simulated cluster of this run has ended ({error.message})", err=True)
                for entry in journal.pending():
                    journal.mark_undone(entry, "its simulated cluster has ended")
                journal.record_replica(False)
        owed = [{"step": o.step, "action": o.action, "node": o.node} for o in journal.pending()]
    return _echo_results(directory, results, owed, as_json)


def _echo_results(directory: Path, results: list[UndoResult], owed: list[dict[str, str]], as_json: bool) -> int:
    if as_json:
        undone = [{"step": r.step, "node": r.node, "proven": r.proven, "because": r.because} for r in results]
        click.echo(json.dumps({"run": str(directory), "undone": undone, "owed": owed}))
    for left in owed:
        echo(on_node(f"still owed: {left['step']} ({left['action']})", left["node"]), err=True)
    if not owed:
        echo(f"nothing is owed by {directory}", err=True)
    return int(Exit.UNDO_PENDING if owed else Exit.HELD)


def _inventory(directory: Path, info: run_directory.RunInfo, given: str | None) -> Inventory:
    if given:
        return load_inventory(Path(given))
    try:
        return Inventory.model_validate(info.inventory)
    except ValidationError as error:
        raise bad_input(
            str(directory / run_directory.RUN),
            f"its inventory is damaged: {error.errors()[0]['msg']}",
            "give --inventory",
        ) from error


def _find(reports: Path, name: str, inventory: str | None) -> Path:
    """The run's directory; one made from the cluster's copy of its journal where it ran on another machine."""
    try:
        return run_directory.find(reports, name)
    except UsageError:
        if inventory is None or Path(name).name != name:
            raise
        return import_run(name, load_inventory(Path(inventory)), reports)


def _run_undo(journal: Journal, info: run_directory.RunInfo, inventory: Inventory) -> list[UndoResult]:
    progress = BestEffortProgress(make_progress(sys.stderr))
    try:
        with connect_cluster(inventory) as opened, opened.clock.participant():
            if info.cluster_uid and opened.uid != info.cluster_uid:
                raise Refused(
                    f"this is another cluster than the run's: its uid is {opened.uid}, not {info.cluster_uid}",
                    hint="give the run's own with --inventory",
                )
            with (
                exclusive_lock(f"{opened.uid} {opened.kube.server}"),
                hold_lock(opened, info.run, progress.note, wait_for_holder=True),
            ):
                results = list(roll_back(journal, opened.hosts, opened.clock, progress))
                ledger = JournalMirror(
                    opened.kube, lock_namespace(opened), RunIdentity(info.run, info.experiment, info.started), journal
                )
                if unsettled := ledger.reconcile():
                    raise UndoPending(f"{unsettled} could not be settled", hint="run nodefall undo again")
                return results
    finally:
        progress.close()


def _is_lab_gone(info: run_directory.RunInfo, given: str | None) -> bool:
    """True if the run had a lab of its own whose process has ended: nothing is left that could be undone."""
    if info.lab_pid is None or given:
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
