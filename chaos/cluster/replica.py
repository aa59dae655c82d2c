"""Content of a replica: the ConfigMap with a run's pending operations, from which any machine can finish the undo.

It names actions, nodes and the state that undo needs, and no command: who may write ConfigMaps must not thereby be root
on nodes. With a key of the inventory it is signed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.action import FactCheck, UndoState
from chaos.core.api_path import resource_path
from chaos.core.field_types import NAME
from chaos.core.moments import Moment
from chaos.core.redaction import redact_json
from chaos.core.store.journal_format import EntryKey, PendingUndo

PREFIX = "nodefall-run-"
FORMAT = 2  # of this version; 1 had commands
_END_OF_TIME = 253402300800.0  # of datetime: the year 10000
_RUN, _ENTRIES, _SIGNATURE = "run.json", "entries.json", "signature"
_FORMER_KEYS = ("pending.json", "owed.json")  # with commands, which are only shown; words: keep


class RunIdentity(Struct, frozen=True):
    """The run that a replica belongs to; ``holder`` as in the cluster's lock, ``nodes`` are those of its plan."""

    run: str
    experiment: str
    started: float
    holder: Annotated[str, Meta(max_length=500)] = ""
    nodes: tuple[str, ...] = ()
    format: int = 1


_Name = Annotated[str, Meta(max_length=253)]


class ReplicaEntry(Struct, frozen=True):
    """One pending operation; the fields as in PendingUndo. A ``state`` of None has no undo that may be sent.

    ``commands`` are those that 0.1.0 published, as text.
    """

    id: int
    step: _Name
    action: _Name
    node: _Name
    t: Moment
    state: UndoState | None = None
    identity: tuple[FactCheck, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def key(self) -> EntryKey:
        """The same in every copy of the run's journal."""
        return self.step, self.action, self.node, self.t


@dataclass(frozen=True, slots=True)
class PendingRun:
    """A run's ConfigMap. ``error`` is why it cannot be read; then its pending undo is unknown."""

    name: str
    identity: RunIdentity
    entries: tuple[ReplicaEntry, ...] = ()
    error: str = ""
    version: str = ""  # resourceVersion
    data: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_pending(self) -> bool:
        """Whether an undo is pending, or may be."""
        return bool(self.error or self.entries)


_Entries = Annotated[tuple[ReplicaEntry, ...], Meta(max_length=5000)]


class Authenticity(StrEnum):
    """Whether a replica is known to be written by a holder of the inventory's key."""

    SIGNED = "signed"
    UNVERIFIED = "unverified"  # there is no key to verify it with
    FORGED = "forged"  # not signed, or not with the key that there is


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs replicas of one cluster. Without a key nothing is signed."""

    cluster_uid: str
    key: bytes = b""

    def sign(self, name: str, data: Mapping[str, str]) -> Mapping[str, str]:
        """``data`` with its signature."""
        return {**data, _SIGNATURE: self._signature(name, data)} if self.key else data

    def verify(self, run: PendingRun) -> Authenticity:
        """Whether a replica was signed with the key, for this cluster and this run."""
        if not self.key:
            return Authenticity.UNVERIFIED
        expected = self._signature(run.name, run.data)
        is_signed = hmac.compare_digest(expected.encode(), run.data.get(_SIGNATURE, "").encode())
        return Authenticity.SIGNED if is_signed else Authenticity.FORGED

    def _signature(self, name: str, data: Mapping[str, str]) -> str:
        """Each part's length precedes it, so that no text can move from one part to the next."""
        parts = (self.cluster_uid, name, data.get(_RUN, ""), data.get(_ENTRIES, ""))
        message = b"".join(len(part.encode()).to_bytes(8) + part.encode() for part in parts)
        return f"hmac-sha256:{hmac.new(self.key, message, hashlib.sha256).hexdigest()}"


def configmap_name(run: str) -> str:
    """Name of the run's ConfigMap."""
    return f"{PREFIX}{run}"


def encode_replica(identity: RunIdentity, pending: Iterable[PendingUndo]) -> dict[str, str]:
    """Data of a ConfigMap; without operations that have nothing to undo."""
    entries = tuple(
        ReplicaEntry(entry.id, entry.step, entry.action, entry.node, entry.t, entry.state, entry.identity)
        for entry in pending
        if entry.undo.proof
    )
    return {_RUN: _json(msgspec.structs.replace(identity, format=FORMAT)), _ENTRIES: _json(entries)}


def decode_replica(item: Mapping[str, Any]) -> PendingRun:
    """A replica from its ConfigMap, whatever that contains."""
    name, data = str(item["metadata"]["name"]), item.get("data") or {}
    try:
        identity = msgspec.json.decode(data.get(_RUN, ""), type=RunIdentity)
        entries = _former_entries(data) if identity.format == 1 else _entries(data)
    except DECODE_ERRORS as error:
        return _unreadable(name, str(error))
    if identity.format > FORMAT:
        return _unreadable(name, f"a newer nodefall wrote it (format {identity.format})")
    if not 0 <= identity.started < _END_OF_TIME:
        return _unreadable(name, f"its run began at {identity.started:g}, which is not a valid time")
    if configmap_name(identity.run) != name or not re.fullmatch(NAME, identity.experiment):  # they become paths
        return _unreadable(name, f"it names the run {identity.run!r} of the experiment {identity.experiment!r}")
    return PendingRun(name, identity, entries, version=version_of(item), data=data)


def configmaps_path(namespace: str) -> str:
    """Path of the ConfigMaps of a namespace."""
    return resource_path("v1", "configmaps", namespace)


def version_of(item: Mapping[str, Any]) -> str:
    """The resourceVersion of an object."""
    return str((item.get("metadata") or {}).get("resourceVersion", ""))


def _entries(data: Mapping[str, str]) -> tuple[ReplicaEntry, ...]:
    entries = msgspec.json.decode(data.get(_ENTRIES, ""), type=_Entries)
    return tuple(msgspec.structs.replace(entry, commands=()) for entry in entries)


def _former_entries(data: Mapping[str, str]) -> tuple[ReplicaEntry, ...]:
    """Entries that nodefall 0.1.0 published."""
    text = next((data[key] for key in _FORMER_KEYS if key in data), "")
    pending = msgspec.json.decode(text, type=list[PendingUndo])
    return tuple(
        ReplicaEntry(
            *(entry.id, entry.step, entry.action, entry.node, entry.t),
            commands=tuple(str(step.command) for step in entry.undo.steps),
        )
        for entry in pending
        if entry.undo.proof
    )


def _unreadable(name: str, error: str) -> PendingRun:
    return PendingRun(name, RunIdentity(name.removeprefix(PREFIX), "", 0.0), error=error)


def _json(value: Any) -> str:
    return redact_json(msgspec.json.encode(value)).decode()
