"""Decoder of recording entries to timeline entries, for live runs and recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from chaos.core.fact import current_fact
from chaos.core.kube import RESOURCES, Metadata
from chaos.core.recording import (
    BOOKMARK,
    ERROR,
    OVERRIDDEN,
    ActionRecord,
    BlindWindow,
    Currency,
    DecodedEntry,
    EntryKind,
    ProbeResult,
    QueryResult,
    RecordingEntry,
)
from chaos.core.timeline import Entry

_STATELESS = frozenset({BOOKMARK, ERROR})
_FORMER_META = {"overruled": OVERRIDDEN}  # of recordings of 0.1.0


class _Head(msgspec.Struct):
    """Identity of an object that cannot be decoded."""

    metadata: Metadata


_OBJECTS = {plural: msgspec.json.Decoder(resource.type) for plural, resource in RESOURCES.items()}
_LINES = msgspec.json.Decoder(list[str])
_ACTIONS = msgspec.json.Decoder(ActionRecord)
_PROBES = msgspec.json.Decoder(ProbeResult)
_QUERIES = msgspec.json.Decoder(QueryResult)
_BLINDS = msgspec.json.Decoder(BlindWindow)
_CURRENCIES = msgspec.json.Decoder(Currency)
_HEADS = msgspec.json.Decoder(_Head)
_JSON = msgspec.json.Decoder()


def decode(recorded: RecordingEntry, seq: int) -> Entry | None:
    """The timeline entry of a recording entry; None for bookmarks, errors and kinds without a decoder.

    An object that cannot be decoded is never fatal: if its identity is readable, its new state is an entry with a note
    (unknown to every judge), else a blind window of length zero.
    """
    if recorded.type in _STATELESS:
        return None
    node = "" if recorded.node is msgspec.UNSET else recorded.node
    note = "" if recorded.note is msgspec.UNSET else recorded.note
    try:
        value = _value(recorded)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return _undecodable(recorded, seq, node, error)
    type_ = current_fact(recorded.type) if recorded.kind == EntryKind.HOST else recorded.type
    since = None if recorded.since is msgspec.UNSET else recorded.since
    return None if value is None else Entry(seq, recorded.t, recorded.kind, type_, value, node, note, since)


def _value(recorded: RecordingEntry) -> Any:
    if isinstance(recorded, DecodedEntry):
        return recorded.value
    decoder = _OBJECTS.get(recorded.kind)
    if decoder is not None:
        return decoder.decode(recorded.object)
    reader = _READERS.get(recorded.kind)
    return reader(recorded) if reader else None


def _blind(recorded: RecordingEntry) -> BlindWindow:
    return msgspec.structs.replace(_BLINDS.decode(recorded.object), source=_blind_source(recorded))


def _blind_source(recorded: RecordingEntry) -> str:
    """Source of a blind window: ``metrics`` of a node is ``metrics@NODE``."""
    about = "" if recorded.node is msgspec.UNSET else recorded.node
    return (
        f"{recorded.type}@{about}"
        if recorded.type in (EntryKind.METRICS, EntryKind.HOST, "power") and about
        else recorded.type
    )


def _action(recorded: RecordingEntry) -> ActionRecord:
    record = _ACTIONS.decode(recorded.object)
    evidence = {current_fact(name): value for name, value in record.evidence.items()}
    return msgspec.structs.replace(record, evidence=evidence) if evidence else record


def _meta(recorded: RecordingEntry) -> dict[str, Any]:
    value = _JSON.decode(recorded.object)
    if not isinstance(value, dict):
        raise ValueError("meta is not an object")  # noqa: TRY004 - every bad object is a ValueError here
    meta: dict[str, Any] = value
    return {_FORMER_META.get(key, key): item for key, item in meta.items()}


def _metrics(lines: list[str]) -> dict[str, float]:
    """Values by name, from lines ``name value`` of the Prometheus text format; labels are part of the name."""
    pairs = (line.rpartition(" ") for line in lines)
    return {name: float(value) for name, _, value in pairs}


_READERS: dict[str, Callable[[RecordingEntry], Any]] = {
    EntryKind.METRICS: lambda recorded: _metrics(_LINES.decode(recorded.object)),
    EntryKind.ACTION: _action,
    EntryKind.BLIND: _blind,
    EntryKind.CURRENT: lambda recorded: _CURRENCIES.decode(recorded.object),
    EntryKind.META: _meta,
    EntryKind.PROMETHEUS: lambda recorded: _QUERIES.decode(recorded.object),
    EntryKind.PROBE: lambda recorded: _PROBES.decode(recorded.object),
    EntryKind.HOST: lambda recorded: _JSON.decode(recorded.object),
    EntryKind.SAMPLE: lambda recorded: _JSON.decode(recorded.object),
}


def _undecodable(recorded: RecordingEntry, seq: int, node: str, error: Exception) -> Entry:
    note = f"undecodable: {error}"
    resource = RESOURCES.get(recorded.kind)
    if resource is not None:
        try:
            head = _HEADS.decode(recorded.object)
        except msgspec.DecodeError:
            head = None
        if head is not None:
            return Entry(
                seq, recorded.t, recorded.kind, recorded.type, resource.type(metadata=head.metadata), node, note
            )
    if recorded.kind == EntryKind.BLIND:  # its end is unknown
        return Entry(
            seq,
            recorded.t,
            EntryKind.BLIND,
            recorded.type,
            BlindWindow(recorded.t, None, note, _blind_source(recorded)),
            node,
            note,
        )
    about = recorded.type if recorded.kind in (EntryKind.PROBE, EntryKind.SAMPLE) else node
    source = f"{recorded.kind}@{about}" if about and resource is None else recorded.kind
    return Entry(
        seq, recorded.t, EntryKind.BLIND, source, BlindWindow(recorded.t, recorded.t, note, source), node, note
    )
