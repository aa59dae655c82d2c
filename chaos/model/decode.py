"""Lines to timeline entries: the one place where what was seen is given a type, live and in recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from chaos.model.kube import Metadata
from chaos.model.recording import BOOKMARK, ActionRecord, BlindWindow, ProbeResult, QueryResult, RecordingEntry
from chaos.model.resources import RESOURCES
from chaos.model.timeline import Entry

_STATELESS = frozenset({BOOKMARK, "ERROR"})  # ERROR of a watch is a Status, no object of its kind
_META, _METRICS, _HOST, _ACTION, _BLIND = "meta", "metrics", "host", "action", "blind"
_PROBE, _PROMETHEUS = "probe", "prometheus"


class _Head(msgspec.Struct):
    """What is needed to know which object a broken one is."""

    metadata: Metadata


_OBJECTS = {plural: msgspec.json.Decoder(resource.type) for plural, resource in RESOURCES.items()}
_LINES = msgspec.json.Decoder(list[str])
_ACTIONS = msgspec.json.Decoder(ActionRecord)
_PROBES = msgspec.json.Decoder(ProbeResult)
_QUERIES = msgspec.json.Decoder(QueryResult)
_BLINDS = msgspec.json.Decoder(BlindWindow)
_HEADS = msgspec.json.Decoder(_Head)
_JSON = msgspec.json.Decoder()


def decode(line: RecordingEntry, seq: int) -> Entry | None:
    """One line as an entry of a timeline; None for bookmarks, errors and kinds that nobody looks at.

    An object that is not understood is never fatal: if it can be told which one it is, its new state is an
    entry with a note (unknown to every judge), else a blind window of no length.
    """
    if line.type in _STATELESS:
        return None
    node = "" if line.node is msgspec.UNSET else line.node
    note = "" if line.note is msgspec.UNSET else line.note
    try:
        value = _value(line)
    except (msgspec.DecodeError, ValueError) as error:
        return _undecodable(line, seq, node, error)
    return None if value is None else Entry(seq, line.t, line.kind, line.type, value, node, note)


def _value(line: RecordingEntry) -> Any:
    decoder = _OBJECTS.get(line.kind)
    if decoder is not None:
        return decoder.decode(line.object)
    reader = _READERS.get(line.kind)
    return reader(line) if reader else None


def _blind(line: RecordingEntry) -> BlindWindow:
    return msgspec.structs.replace(_BLINDS.decode(line.object), source=_blind_source(line))


def _blind_source(line: RecordingEntry) -> str:
    """``metrics`` about a node is ``metrics@NODE``."""
    about = "" if line.node is msgspec.UNSET else line.node
    return f"{line.type}@{about}" if line.type in ("metrics", "host", "power") and about else line.type


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("meta is not an object")  # noqa: TRY004 - every bad object is a ValueError here
    return value


def _metrics(lines: list[str]) -> dict[str, float]:
    """Prometheus text lines ``name value`` (labels, if any, stay part of the name)."""
    pairs = (line.rpartition(" ") for line in lines)
    return {name: float(value) for name, _, value in pairs}


_READERS: dict[str, Callable[[RecordingEntry], Any]] = {
    _METRICS: lambda line: _metrics(_LINES.decode(line.object)),
    _ACTION: lambda line: _ACTIONS.decode(line.object),
    _BLIND: _blind,
    _META: lambda line: _mapping(_JSON.decode(line.object)),
    _PROMETHEUS: lambda line: _QUERIES.decode(line.object),
    _PROBE: lambda line: _PROBES.decode(line.object),
    _HOST: lambda line: _JSON.decode(line.object),
}


def _undecodable(line: RecordingEntry, seq: int, node: str, error: Exception) -> Entry:
    note = f"undecodable: {error}"
    resource = RESOURCES.get(line.kind)
    if resource is not None:
        try:
            head = _HEADS.decode(line.object)
        except msgspec.DecodeError:
            head = None
        if head is not None:
            return Entry(seq, line.t, line.kind, line.type, resource.type(metadata=head.metadata), node, note)
    if line.kind == _BLIND:  # nobody knows how long it lasted
        return Entry(seq, line.t, _BLIND, line.type, BlindWindow(line.t, None, note, _blind_source(line)), node, note)
    about = line.type if line.kind == _PROBE else node
    source = f"{line.kind}@{about}" if about and resource is None else line.kind
    return Entry(seq, line.t, _BLIND, source, BlindWindow(line.t, line.t, note, source), node, note)
