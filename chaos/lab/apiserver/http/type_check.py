"""Type check of objects by Kubernetes' schemas, as by the API server's decoder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.lab.apiserver.http.patch_meta import resolve_reference, schema_of
from chaos.lab.apiserver.http.resources import Resource

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def check_types(obj: dict[str, Any], resource: Resource) -> tuple[list[str], list[str]]:
    """Type errors, in the words of encoding/json, and paths of unknown fields, which are removed from ``obj``."""
    findings = list(_check(obj, schema_of(resource), ""))
    return [text for unknown, text in findings if not unknown], [text for unknown, text in findings if unknown]


def _check(value: Any, schema: dict[str, Any], path: str) -> Iterator[tuple[bool, str]]:
    schema = resolve_reference(schema)
    type_ = _TYPES.get(schema.get("type", ""))
    if value is None or type_ is None:
        return
    if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
        yield False, f"cannot unmarshal {_name(value)} into {path} of type {schema['type']}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _check_fields(value, schema, path)


def _check_fields(value: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[tuple[bool, str]]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, item in list(value.items()):
        here = f"{path}.{key}".removeprefix(".")
        if key in properties:
            yield from _check(item, properties[key], here)
        elif isinstance(others, dict):
            yield from _check(item, others, here)
        elif properties:
            del value[key]
            yield True, here


def _name(value: Any) -> str:
    names = {bool: "bool", str: "string", list: "array", dict: "object"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "number")
