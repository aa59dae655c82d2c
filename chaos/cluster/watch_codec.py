"""Codec of lists and watches. Only bytes are split, so that one bad object invalidates nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from chaos.core.kube import KubeObject, Metadata, Resource
from chaos.core.recording import BOOKMARK, ERROR, DecodedEntry, RecordingEntry

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # what decoding raises; the last if too deep
_encode = msgspec.json.Encoder().encode
MAX_LINE_BYTES = 32 << 20  # bytes of a line: etcd takes objects of 1.5 MiB


class TruncatedLineError(Exception):
    """The stream ended in the middle of a line, or a line does not end."""


class _RawEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct):
    """One page of a list."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class Status(msgspec.Struct):
    """The status in an ERROR event."""

    code: int = 0
    message: str = ""


class _StatusEvent(msgspec.Struct):
    """An ERROR event."""

    object: Status


class PartialObjectMetadata(msgspec.Struct):
    """The metadata, which identifies an object."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


class DecodedObject(msgspec.Struct, gc=False):
    """The part of an object that could be decoded. ``error`` is the reason why the rest could not."""

    metadata: Metadata
    object: KubeObject | None
    error: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.metadata.namespace, self.metadata.name

    def entry(self, t: float, kind: str, type_: str) -> RecordingEntry:
        """An entry with only the fields of model.kube."""
        if self.object is not None:
            return DecodedEntry.of(t, kind, type_, msgspec.Raw(_encode(self.object)), self.object)
        return RecordingEntry(t, kind, type_, msgspec.Raw(_encode({"metadata": self.metadata})))


class WatchCodec:
    """Decoders for one resource; all raise DECODE_ERRORS."""

    def __init__(self, resource: Resource) -> None:
        self._object = msgspec.json.Decoder(resource.type)
        self._head = msgspec.json.Decoder(PartialObjectMetadata)
        event_type = msgspec.defstruct("_TypedEvent", [("type", str), ("object", resource.type)], gc=False)
        self._typed_event = msgspec.json.Decoder(event_type)
        self._event = msgspec.json.Decoder(_RawEvent)
        self._status = msgspec.json.Decoder(_StatusEvent)
        self.decode_page = msgspec.json.Decoder(ListPage).decode

    def decode_event(self, line: bytes) -> tuple[str, DecodedObject]:
        """The type of an event and its object; of a bookmark only the metadata and of an ERROR nothing is needed."""
        try:
            event: Any = self._typed_event.decode(line)
        except DECODE_ERRORS:
            raw = self._event.decode(line)
            if raw.type == ERROR:
                return ERROR, DecodedObject(Metadata(), None)
            if raw.type == BOOKMARK:
                return BOOKMARK, DecodedObject(self.decode_metadata(raw.object), None)
            return raw.type, self.decode_object(raw.object)
        return event.type, DecodedObject(event.object.metadata, event.object)

    def decode_status(self, line: bytes) -> Status:
        """The object of an ERROR event."""
        return self._status.decode(line).object

    def decode_metadata(self, raw: msgspec.Raw) -> Metadata:
        return self._head.decode(raw).metadata

    def decode_object(self, raw: msgspec.Raw) -> DecodedObject:
        """The object; if it cannot be decoded, its metadata. Raises DECODE_ERRORS if those cannot be decoded either."""
        try:
            value = self._object.decode(raw)
        except DECODE_ERRORS as error:
            return DecodedObject(self.decode_metadata(raw), None, f"undecodable: {error}")
        return DecodedObject(value.metadata, value)


def split_lines(chunks: Iterable[bytes], max_bytes: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """Whole lines, split at newlines only (never at U+0085 and its like). Raises TruncatedLineError."""
    partial: list[bytes] = []
    size = 0
    for chunk in chunks:
        if not partial and 0 < chunk.find(b"\n") == len(chunk) - 1 <= max_bytes and not chunk.isspace():
            yield chunk[:-1]  # one line, as API servers send each event
            continue
        size = len(chunk) - chunk.rfind(b"\n") - 1 if b"\n" in chunk else size + len(chunk)
        if size > max_bytes:
            raise TruncatedLineError(f"a line of the watch is longer than {max_bytes >> 20} MiB")
        first, *others = chunk.split(b"\n")
        partial += [first] if first else []
        for other in others:
            line = b"".join(partial)
            partial = [other] if other else []
            if line.strip():
                yield line
    if b"".join(partial).strip():
        raise TruncatedLineError("the watch ended in the middle of a line")
