"""The cluster's lock, and the key that signs the journals beside it, for commands that change a cluster."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from chaos.cluster.lease import PROCESS, LeaseRecord, read_lock
from chaos.cluster.lease_lock import ClusterLock, Identity
from chaos.cluster.replica import Signer
from chaos.core.clock import SystemClock
from chaos.core.errors import Refused
from chaos.core.labels import LOCK_NAME, RUN_LABEL
from chaos.core.ports import KubeApi
from chaos.core.store.process_lock import MachineLock, current_identity, exclusive_lock
from chaos.engine.connection import ClusterConnection, cluster_identity, lock_namespace, login
from chaos.machines.local import resolve_secret

MIN_KEY_LENGTH = 16  # characters of a journal key


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


def held_lock(kube: KubeApi, namespace: str, name: str = LOCK_NAME) -> LeaseRecord | None:
    """The lock, if its holder has renewed it lately by the clock of this machine. Raises NodefallError."""
    record = read_lock(kube, namespace, name)
    with closing(SystemClock()) as clock:
        return record if record and record.holder and record.is_recent(clock.now()) else None


def hold_machine_lock(connection: ClusterConnection) -> AbstractContextManager[MachineLock]:
    """Hold this machine's lock on the cluster for the block. Raises Refused if another process has it."""
    return exclusive_lock(cluster_identity(connection))


def own_identity(run: str) -> Identity:
    """The identity of this process, by which others of this machine can prove that it is gone."""
    annotations = {RUN_LABEL: run}
    if process := current_identity():
        annotations[PROCESS] = process.encode()
    return Identity(f"{login()}@{socket.gethostname()}/{os.getpid()}-{secrets.token_hex(4)}", annotations)


def journal_signer(connection: ClusterConnection) -> Signer:
    """Signs and verifies the journals in a cluster, if the inventory has a key. Raises Refused."""
    cluster = connection.inventory.cluster
    if cluster is None or cluster.journal_key is None:
        return Signer(connection.uid)
    key = resolve_secret(cluster.journal_key)
    if len(key) < MIN_KEY_LENGTH:
        raise Refused(
            f"cluster.journalKey is too short: it has {len(key)} characters",
            hint=f"use {MIN_KEY_LENGTH} or more, as from `openssl rand -hex 32`",
        )
    return Signer(connection.uid, key.encode())
