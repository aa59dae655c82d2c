"""Bodies in application/vnd.kubernetes.protobuf, which client-go's typed clients send, such as kubectl's.

Field numbers: generated.proto of k8s.io/api and k8s.io/apimachinery. Other kinds and fields are rejected; responses
are JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.http.errors import ApiError

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Base64(dict[str, str]):
    """Bytes by key, in base64 as in JSON."""


@dataclass(frozen=True, slots=True)
class Field:
    """``kind``: str, int, bool, bytes, dict of strings, Base64 dict of bytes, or the fields of a message by number."""

    name: str
    kind: type | Mapping[int, Field] = str
    repeated: bool = False


def _strings(*names: str) -> dict[int, Field]:
    return {number: Field(name) for number, name in enumerate(names, 1)}


_ENVELOPE = {1: Field("typeMeta", _strings("apiVersion", "kind")), 2: Field("raw", bytes)}
_METADATA = {
    **_strings("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"),
    11: Field("labels", dict),
    12: Field("annotations", dict),
    14: Field("finalizers", repeated=True),
}
_HEAD = {1: Field("metadata", _METADATA)}
_DELETE_OPTIONS = {
    1: Field("gracePeriodSeconds", int),
    2: Field("preconditions", _strings("uid", "resourceVersion")),
    3: Field("orphanDependents", bool),
    4: Field("propagationPolicy"),
    5: Field("dryRun", repeated=True),
}
_RESOURCE = _strings("namespace", "verb", "group", "version", "resource", "subresource", "name")
_ACCESS = {1: Field("resourceAttributes", _RESOURCE), 2: Field("nonResourceAttributes", _strings("path", "verb"))}
_PORT = {1: Field("name"), 2: Field("hostPort", int), 3: Field("containerPort", int), 4: Field("protocol")}
_CONTAINER = {
    **_strings("name", "image"),
    3: Field("command", repeated=True),
    4: Field("args", repeated=True),
    6: Field("ports", _PORT, repeated=True),
}
_TEMPLATE = {**_HEAD, 2: Field("spec", {2: Field("containers", _CONTAINER, repeated=True)})}
_DEPLOYMENT = {
    1: Field("replicas", int),
    2: Field("selector", {1: Field("matchLabels", dict)}),
    3: Field("template", _TEMPLATE),
}
_MESSAGES: dict[str, dict[int, Field]] = {
    "ConfigMap": {**_HEAD, 2: Field("data", dict)},
    "DeleteOptions": _DELETE_OPTIONS,
    "Deployment": {**_HEAD, 2: Field("spec", _DEPLOYMENT)},
    "Eviction": {**_HEAD, 2: Field("deleteOptions", _DELETE_OPTIONS)},
    "Namespace": _HEAD,
    "PriorityClass": {
        **_HEAD,
        2: Field("value", int),
        3: Field("globalDefault", bool),
        4: Field("description"),
        5: Field("preemptionPolicy"),
    },
    "Secret": {
        **_HEAD,
        2: Field("data", Base64),
        3: Field("type"),
        4: Field("stringData", dict),
        5: Field("immutable", bool),
    },
    "SelfSubjectAccessReview": {**_HEAD, 2: Field("spec", _ACCESS)},
    "SelfSubjectRulesReview": {**_HEAD, 2: Field("spec", _strings("namespace"))},
    "SelfSubjectReview": _HEAD,
    "ServiceAccount": _HEAD,
}


def decode(data: bytes) -> dict[str, Any]:
    """Decode a body to the object that JSON would give. Raises ApiError 400 and 415."""
    if not data.startswith(_MAGIC):
        raise ApiError(400, "the body is not Kubernetes protobuf")
    try:
        envelope = _message(data[len(_MAGIC) :], _ENVELOPE)
        head = envelope["typeMeta"]
        if head["kind"] not in _MESSAGES:
            raise ApiError(415, f"the lab does not decode {head['kind']} as {CONTENT_TYPE}, only as JSON")
        return {**head, **_message(envelope.get("raw", b""), _MESSAGES[head["kind"]])}
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
        if field.kind in (dict, Base64):
            result.setdefault(field.name, {}).update(item)
        elif field.repeated:
            result.setdefault(field.name, []).append(item)
        elif item != "":
            result[field.name] = item
    return result


def _value(value: int | bytes, kind: type | Mapping[int, Field]) -> Any:
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
        entry = _message(value, _strings("key", "value"))
        return {entry["key"]: entry.get("value", "")}
    if isinstance(kind, Mapping):
        return _message(value, kind)
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
