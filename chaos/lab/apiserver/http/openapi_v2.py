"""OpenAPI v2 in protobuf, which kubectl requires: it validates the items of a ``kind: List`` with it.

Field numbers: OpenAPIv2.proto of github.com/google/gnostic. It has no paths: kubectl uses only the definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from chaos.lab.apiserver.http.openapi import schemas

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_REF, _FORMAT, _REQUIRED, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 1, 2, 19, 21, 22, 23, 25, 31


@cache
def swagger_protobuf() -> bytes:
    """OpenAPI v2 document as a Document message."""
    info = _text(1, "Kubernetes") + _text(2, "unversioned")
    return _text(1, "2.0") + _bytes(2, info) + _bytes(9, _named_schemas(schemas()))


def _named_schemas(schemas_by_name: dict[str, Any]) -> bytes:
    """Message of NamedSchema messages only: Definitions, Properties."""
    return b"".join(_bytes(1, _text(1, name) + _bytes(2, _schema(schema))) for name, schema in schemas_by_name.items())


def _schema(schema: dict[str, Any]) -> bytes:
    return b"".join(_parts(schema))


def _parts(schema: dict[str, Any]) -> Iterator[bytes]:
    """Fields of a Schema message. Version 2 has no ``oneOf``: such a type accepts any value."""
    for key, value in schema.items():
        if key == "$ref":
            yield _text(_REF, value.replace("/components/schemas/", "/definitions/"))
        elif key == "format":
            yield _text(_FORMAT, value)
        elif key == "required":
            yield from (_text(_REQUIRED, name) for name in value)
        elif key == "additionalProperties":
            yield _bytes(_ADDITIONAL, _bytes(1, _schema(value)))
        elif key == "type":
            yield _bytes(_TYPE, _text(1, value))
        elif key == "items":
            yield _bytes(_ITEMS, _bytes(1, _schema(value)))
        elif key == "properties":
            yield _bytes(_PROPERTIES, _named_schemas(value))
        elif key.startswith("x-"):
            yaml = msgspec.json.encode(value) + b"\n"
            yield _bytes(_EXTENSION, _text(1, key) + _bytes(2, _bytes(2, yaml)))


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
