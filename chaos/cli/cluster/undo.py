"""Lists and finishes pending undos."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from chaos.app.undo.elsewhere import learn_of_run
from chaos.app.undo.finish import Undone, UndoRequest, finish_undo
from chaos.app.undo.pending import guard_pending_undo
from chaos.app.undo.sources import import_run, load_info, pending_runs
from chaos.app.wiring.logs import run_log
from chaos.cli.inventory import inventory_of, overridden, refuse_overrides
from chaos.cli.output import echo, print_document
from chaos.cli.run.live import BestEffortProgress, make_progress
from chaos.cli.run.plan import confirm_acceptance, confirm_entries, describe_rejected
from chaos.cluster.replica import ReplicaEntry
from chaos.core.errors import BadInput, Exit, NodefallError, UsageError, bad_input
from chaos.core.inventory import Inventory
from chaos.core.store import run_directory
from chaos.core.store.journal import NAME, Journal, read_pending, replace_damaged
from chaos.core.store.journal_format import PendingUndo
from chaos.core.text import on_node

logger = logging.getLogger(__name__)


def list_pending(reports: Path, inventory: str | None, as_json: bool) -> int:
    """List the runs below ``reports`` with a pending undo or an unreadable journal; the exit code.

    With an inventory, the runs of any machine on that cluster. Without one, what the journals on this machine show,
    once they have learned what another machine has undone. A cluster that does not respond leaves it pending.
    """
    if not inventory:
        refuse_overrides("without --inventory, each run is looked up on its own cluster")
    scope = f"runs on the cluster of {inventory}" if inventory else f"runs in {reports}"
    rows, unreadable = _in_cluster(inventory_of(inventory)) if inventory else _on_disk(reports)
    if as_json:
        print_document({"pendingUndo": rows, "unreadable": unreadable})
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
            if any(entry.undo.proof for entry in read_pending(path.parent)):
                _learn(path.parent)
            pending = read_pending(path.parent)
        except NodefallError as error:
            unreadable.append(error.message)
            continue
        rows += [_row(str(path.parent), entry) for entry in pending]
    return rows, unreadable


def _learn(directory: Path) -> None:
    """Let the journal learn what another machine has undone, if the run's cluster responds."""
    try:
        run_directory.refuse_untrusted(directory)
        info = load_info(directory, has_inventory=False)
        learn_of_run(directory, info, _inventory(directory, info, None), partial(echo, err=True))
    except NodefallError as error:
        logger.info("%s: its cluster does not say whether it was undone: %s", directory, error.message)


@dataclass(frozen=True, slots=True)
class UndoOptions:
    """The options of the command."""

    run: str
    inventory: str | None
    reports: Path
    yes: bool = False
    as_json: bool = False
    accept: tuple[str, ...] = ()


def undo(options: UndoOptions) -> int:
    """Finish the pending undo of one run; the exit code. Raises UndoPending if it could not be attempted."""
    directory = _find(options.reports, options.run, options.inventory)
    run_directory.refuse_untrusted(directory)
    with run_log() as log, guard_pending_undo(directory):
        info = load_info(directory, has_inventory=options.inventory is not None)
        try:
            undone = _finish(directory, info, options, partial(log.open, directory))
        except NodefallError as error:
            if not _is_lab_gone(info, options.inventory):
                raise
            echo(f"the simulated cluster of this run no longer exists ({error.message})", err=True)
            undone = _close_journal(directory)
    return _echo_result(directory, undone, options.as_json)


def _finish(
    directory: Path, info: run_directory.RunInfo, options: UndoOptions, on_open: Callable[[], object]
) -> Undone:
    progress = BestEffortProgress(make_progress(sys.stderr, force_plain=True))
    confirm = partial(confirm_entries, progress=progress, yes=options.yes)
    try:
        inventory = _inventory(directory, info, options.inventory)
        confirm_machine = partial(confirm_acceptance, progress=progress, yes=options.yes)
        accepting = (options.accept, confirm_machine, options.inventory or "")
        return finish_undo(UndoRequest(directory, info, inventory, confirm, on_open, *accepting), progress)
    finally:
        progress.close()


def _close_journal(directory: Path) -> Undone:
    """Close all entries of a run whose cluster is gone."""
    try:
        with Journal(directory) as journal:
            for entry in journal.pending():
                journal.mark_undone(entry, "its simulated cluster no longer exists")
            journal.record_replica(False)
    except BadInput:
        replace_damaged(directory, (), has_replica=False)
    return Undone()


def _echo_result(directory: Path, undone: Undone, as_json: bool) -> int:
    pending = [{"step": o.step, "action": o.action, "node": o.node} for o in undone.pending]
    rejected = [
        {"step": r.entry.step, "action": r.entry.action, "node": r.entry.node, "because": r.why}
        for r in undone.rejected
    ]
    if as_json:
        results = [{"step": r.step, "node": r.node, "proven": r.proven, "because": r.because} for r in undone.results]
        document = {"run": str(directory), "undone": results, "pendingUndo": pending, "rejected": rejected}
        print_document(document)
    for entry in pending:
        echo(on_node(f"pending undo: {entry['step']} ({entry['action']})", entry["node"]), err=True)
    for each in undone.rejected:
        echo(describe_rejected(each), err=True)
    namespace, _, name = undone.configmap.partition("/")
    delete = shlex.join(["kubectl", "-n", namespace, "delete", "configmap", name])
    if pending:
        again = f"run nodefall undo {shlex.quote(str(directory))} again"
        away = f"move {shlex.quote(str(directory))} out of the reports"
        echo(f"hint: {again}; if only machines are left that are gone for good, {away}, then run {delete}", err=True)
    for hint in dict.fromkeys(each.hint for each in undone.rejected if each.hint):
        echo(f"hint: {hint}, then undo again", err=True)
    if any(not each.hint for each in undone.rejected):
        echo(f"hint: undo what is right of them by hand, then run {delete}", err=True)
    if not pending and not rejected:
        echo(f"no pending undo in {directory}", err=True)
    return int(Exit.UNDO_PENDING if pending or rejected else Exit.HELD)


def _inventory(directory: Path, info: run_directory.RunInfo, inventory_file: str | None) -> Inventory:
    if inventory_file:
        return inventory_of(inventory_file)
    try:
        return overridden(Inventory.model_validate(info.inventory))
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
        return import_run(name, inventory_of(inventory), reports)


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
