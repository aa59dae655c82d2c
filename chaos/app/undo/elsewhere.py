"""Undo on another machine: the journals on this one learn of it from the cluster and the nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from chaos.app.wiring.connect import connect_cluster
from chaos.cluster.journal_mirror import find_replica
from chaos.core.errors import NodefallError
from chaos.core.inventory import Inventory
from chaos.core.store.journal import Journal
from chaos.core.store.journal_format import PendingUndo, entry_key
from chaos.core.store.run_directory import RunInfo
from chaos.core.store.run_history import local_runs
from chaos.core.text import on_node
from chaos.engine.connection import ClusterConnection, cluster_identity, lock_namespace
from chaos.engine.guards import IdentityGuard
from chaos.engine.rollback import SETTLE_SECONDS
from chaos.machines.pool import Hosts

Note = Callable[[str], object]
logger = logging.getLogger(__name__)


def learn_from_cluster(connection: ClusterConnection, reports: Path, note: Note) -> None:
    """Mark what another machine has undone in the journals below ``reports`` of runs on this cluster.

    ``note`` is called with each operation that is undone. What is in doubt stays pending.
    """
    for run in local_runs(reports, cluster_identity(connection)):
        if run.is_readable and run.has_pending:
            _learn(connection, run.directory, run.run, note)


def learn_of_run(directory: Path, info: RunInfo, inventory: Inventory, note: Note) -> None:
    """As :func:`learn_from_cluster` for one run, over a new connection. Raises NodefallError if there is none."""
    with connect_cluster(inventory) as connection, connection.clock.participant():
        if not info.cluster_uid or connection.uid == info.cluster_uid:
            _learn(connection, directory, info.run, note)


def _learn(connection: ClusterConnection, directory: Path, run: str, note: Note) -> None:
    """Mark the operations that the copy in the cluster no longer has, if the nodes show that they are undone.

    An operation is in the copy before it begins, and is removed once its undo is proven; the copy is deleted with the
    last one. But anyone who may change ConfigMaps can remove it, so only the nodes prove the undo.
    """
    try:
        with Journal(directory) as journal:
            if not journal.has_replica:
                return
            replica = find_replica(connection.kube, lock_namespace(connection), run)
            if replica and replica.error:
                return
            still_pending = {entry.key for entry in replica.entries} if replica else set()
            for entry in journal.pending():
                if entry_key(entry) not in still_pending:
                    _mark_if_proven(connection, journal, entry, run, note)
            if replica is None and not journal.pending():
                journal.record_replica(exists=False)
    except NodefallError as error:  # its run or undo is still in progress, or the cluster does not respond
        logger.info("%s: unknown whether another machine has undone it: %s", directory, error.message)


def _mark_if_proven(connection: ClusterConnection, journal: Journal, entry: PendingUndo, run: str, note: Note) -> None:
    where = on_node(entry.step, entry.node)
    if connection.clock.now() < entry.t + SETTLE_SECONDS + entry.undo.settle_seconds:
        return
    try:
        why_not = _unmet(connection.hosts, entry)
    except NodefallError as error:
        why_not = error.message
    if why_not:
        logger.info("%s of run %s: not proven to be undone by another machine: %s", where, run, why_not)
        return
    proof = ", ".join(map(str, entry.undo.proof)) or "nothing to undo"
    journal.mark_undone(entry, f"undone on another machine: {proof}")
    note(f"{where} of run {run} was undone on another machine: {proof}")


def _unmet(hosts: Hosts, entry: PendingUndo) -> str:
    """The first thing that does not show that the entry is undone, "" if all does. Changes nothing on the node."""
    if not entry.undo.proof and entry.undo.steps:
        return "its undo is not proven"
    for check in entry.undo.proof:
        holds, observed = hosts.check(entry.node, check)
        if not holds:
            return observed or f"it is unknown whether {check}"
    if unmet := IdentityGuard(hosts, entry.node, entry.identity).unmet_for_proof(entry.undo):
        return unmet
    if entry.undo.disarm and any(
        str(timer).startswith(entry.undo.disarm) for timer in hosts.read(entry.node, "failsafe-timers")
    ):
        return f"the timer {entry.undo.disarm} is still there"
    return ""
