"""The cluster's lock and its debts, for the commands that change a cluster."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chaos.app.connect import ClusterConnection, local_machine_id, login
from chaos.clock import SystemClock
from chaos.kube.journal_mirror import PendingRun, delete_configmap, pending_runs
from chaos.kube.lease import MACHINE
from chaos.kube.lease_lock import ClusterLock, Identity
from chaos.model.errors import Refused, UsageError
from chaos.model.labels import RUN_LABEL
from chaos.model.text import on_node


@contextmanager
def hold_lock(
    opened: ClusterConnection, run: str, note: Callable[[str], object], *, wait_for_holder: bool = False
) -> Iterator[ClusterLock]:
    """Hold it, and give it up at the end. Call with this machine's own lock held. Raises Refused.

    ``note`` is told that a dead holder's time must be awaited; it may refuse to.
    """
    clock = SystemClock()
    lock = ClusterLock(opened.kube, lock_namespace(opened), _identity(run), clock.now)
    try:
        lock.acquire(note, wait_for_live=wait_for_holder)
        yield lock
    finally:
        lock.release()
        clock.close()


def lock_namespace(opened: ClusterConnection) -> str:
    """Where the lock and the journals of runs are kept."""
    if opened.inventory.cluster is None:
        raise UsageError("the inventory has no cluster")
    return opened.inventory.cluster.namespace


def refuse_pending_undo(opened: ClusterConnection) -> list[PendingRun]:
    """No run begins while another's undo is owed. Those that owe nothing any more. Raises Refused."""
    found = pending_runs(opened.kube, lock_namespace(opened))
    for debt in found:
        if debt.has_pending:
            whose = f" of {debt.identity.holder}" if debt.identity.holder else ""
            raise Refused(
                f"run {debt.identity.run}{whose} still owes {describe_pending(debt)}",
                hint=f"nodefall undo {debt.identity.run}, with --inventory if it ran on another machine",
            )
    return found


def remove_finished_runs(opened: ClusterConnection) -> None:
    """With the lock held: remove what is left of runs that owe nothing. Raises Refused."""
    for debt in refuse_pending_undo(opened):
        delete_configmap(opened.kube, lock_namespace(opened), debt.identity.run)


def describe_pending(debt: PendingRun) -> str:
    """What is owed, in words."""
    if debt.error:
        return f"nobody knows what, as its journal cannot be read ({debt.error})"
    return ", ".join(dict.fromkeys(f"the undo of {on_node(o.step, o.node)}" for o in debt.pending if o.undo.proof))


def _identity(run: str) -> Identity:
    """``MACHINE`` tells who shares this machine's own lock: of them only one lives."""
    machine = local_machine_id()
    place = f"{machine} {os.getuid()} {tempfile.gettempdir()}"
    about = {RUN_LABEL: run} | ({MACHINE: hashlib.sha256(place.encode()).hexdigest()[:16]} if machine else {})
    return Identity(f"{login()}@{socket.gethostname()}/{os.getpid()}-{secrets.token_hex(4)}", about)
