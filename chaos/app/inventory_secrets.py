"""Secrets that the inventory refers to."""

# ruff: noqa: PLC0415 - slow imports are deferred until a secret is read
from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.cluster.replica import Signer
from chaos.core.errors import Refused
from chaos.core.field_types import Secret

if TYPE_CHECKING:
    from chaos.app.connect import ClusterConnection

MIN_KEY_LENGTH = 16  # characters of a journal key


def resolve_secret(secret: Secret) -> str:
    """The secret. Raises Refused."""
    from chaos.machines.power.local import SecretContext, read_secret

    return read_secret(secret, SecretContext(os.environ, Path.home()))


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
