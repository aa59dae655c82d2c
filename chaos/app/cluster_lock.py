"""The cluster's lock and its pending undo, for commands that change a cluster."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from chaos.app.connect import ClusterConnection, login
from chaos.cluster.lease import PROCESS
from chaos.cluster.lease_lock import ClusterLock, Identity
from chaos.core.clock import SystemClock
from chaos.core.errors import UsageError
from chaos.core.labels import LOCK_NAME, RUN_LABEL
from chaos.core.store.process_lock import MachineLock, current_identity, exclusive_lock


@contextmanager
def hold_lock(
    connection: ClusterConnection,
    machine: MachineLock,
    run: str,
    note: Callable[[str], object],
    *,
    wait_for_holder: bool = False,
    name: str = LOCK_NAME,
) -> Iterator[ClusterLock]:
    """Hold the cluster's lock for the block, or another one with this ``name``. Raises Refused.

    ``machine``: the lock of this machine, which knows who has ended here without releasing the cluster's.
    ``note`` is called before waiting for the lease of a dead holder to expire; it may raise Refused.
    """
    clock, identity = SystemClock(), own_identity(run)
    lock = ClusterLock(connection.kube, lock_namespace(connection), identity, clock.now, ended=machine.ended, name=name)
    acquired = False
    machine.enter(identity.holder)
    try:
        lock.acquire(note, wait_for_live=wait_for_holder)
        acquired = True
        yield lock
    finally:
        if lock.release() or not acquired:
            machine.leave(acquired=acquired)
        clock.close()


def hold_machine_lock(connection: ClusterConnection) -> AbstractContextManager[MachineLock]:
    """Hold this machine's lock on the cluster for the block. Raises Refused if another process has it."""
    return exclusive_lock(cluster_identity(connection))


def cluster_identity(connection: ClusterConnection) -> str:
    """What distinguishes the cluster from every other one: its UID, however its address is written.

    Labs of one seed share a UID, but each has a separate certificate authority.
    """
    cluster = connection.inventory.cluster
    lab = f"-{connection.kube.ca_digest[:16]}" if cluster and cluster.simulated else ""
    return f"{connection.uid}{lab}"


def lock_namespace(connection: ClusterConnection) -> str:
    """The namespace of the lock's Lease and of the journals of runs. Raises UsageError."""
    if connection.inventory.cluster is None:
        raise UsageError("the inventory has no cluster")
    return connection.inventory.cluster.namespace


def own_identity(run: str) -> Identity:
    """The identity of this process, by which others of this machine can prove that it is gone."""
    annotations = {RUN_LABEL: run}
    if process := current_identity():
        annotations[PROCESS] = process.encode()
    return Identity(f"{login()}@{socket.gethostname()}/{os.getpid()}-{secrets.token_hex(4)}", annotations)
