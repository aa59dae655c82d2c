"""Bodies in application/vnd.kubernetes.protobuf, which client-go's typed clients send, such as kubectl's.

Kinds and fields that :mod:`protobuf_messages` does not have are rejected; responses are JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from chaos.lab.http.errors import ApiError
from chaos.lab.http.protobuf_messages import ENVELOPE, MESSAGES, QUANTITY, Base64, Field, Kind, Quantities

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def decode(data: bytes) -> dict[str, Any]:
    """Decode a body to the object that JSON would give. Raises ApiError 400 and 415."""
    if not data.startswith(_MAGIC):
        raise ApiError(400, "the body is not Kubernetes protobuf")
    try:
        envelope = _message(data[len(_MAGIC) :], ENVELOPE)
        head = envelope["typeMeta"]
        if head["kind"] not in MESSAGES:
            raise ApiError(415, f"the lab does not decode {head['kind']} as {CONTENT_TYPE}, only as JSON")
        return {**head, **_message(envelope.get("raw", b""), MESSAGES[head["kind"]])}
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ApiError(400, f"the body is not Kubernetes protobuf: {error!r}") from error


def _message(data: bytes, fields: Mapping[int, Field]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for number, value in _parts(data):
        field = fields.get(number)
        if field is None:
            if _is_set(value):
                raise ApiError(
                    415, f"the lab does not decode field {number} of the body as {CONTENT_TYPE}, only as JSON"
                )
            continue
        item = _value(value, field.kind)
        if field.inline:
            result.update(item)
        elif field.kind in (dict, Base64, Quantities):
            result.setdefault(field.name, {}).update(item)
        elif field.repeated:
            result.setdefault(field.name, []).append(item)
        elif item != "" and (item or not field.omits_zero):
            result[field.name] = item
    return result


def _value(value: int | bytes, kind: Kind) -> Any:
    if kind in (int, bool):
        if not isinstance(value, int):
            raise TypeError("a number was expected")
        return bool(value) if kind is bool else value - (1 << 64 if value >> 63 else 0)
    if not isinstance(value, bytes):
        raise TypeError("bytes were expected")
    if kind is Base64:
        entry = _message(value, {1: Field("key"), 2: Field("value", bytes)})
        return {entry["key"]: base64.b64encode(entry.get("value", b"")).decode()}
    if kind is dict:
        entry = _message(value, {1: Field("key"), 2: Field("value")})
        return {entry["key"]: entry.get("value", "")}
    if kind is Quantities:
        entry = _message(value, {1: Field("key"), 2: Field("value", QUANTITY)})
        return {entry["key"]: entry["value"]}
    if isinstance(kind, Mapping):
        found = _message(value, kind)
        return found.get("string", "") if kind is QUANTITY else found
    return value if kind is bytes else value.decode()


def _is_set(value: int | bytes) -> bool:
    """Whether a field is set: not zero, and no message of unset fields, as Go encodes empty structs."""
    if isinstance(value, int):
        return value != 0
    try:
        return any(_is_set(inner) for _, inner in _parts(value))
    except (IndexError, ValueError):
        return True


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            number, at = _varint(data, at)
            yield key >> 3, number
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire, 0)
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif not size:
            raise ValueError(f"wire type {wire}")
        if at + size > len(data):
            raise IndexError("the body is truncated")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number is too long")
