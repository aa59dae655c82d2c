"""Secrets that the inventory refers to."""

from __future__ import annotations

from chaos.cluster.replica import Signer
from chaos.core.errors import Refused
from chaos.engine.connection import ClusterConnection
from chaos.machines.power.secrets import resolve_secret

MIN_KEY_LENGTH = 16  # characters of a journal key


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
