"""Kubernetes' schemas: metadata for patches, type checks, validation.

Metadata for strategic merge patches: patchStrategy and patchMergeKey of each field.
Type check of objects by Kubernetes' schemas, as by the API server's decoder.
Validation of objects that clients send, before they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from chaos.lab.http.errors import ApiError
from chaos.lab.http.openapi import schemas
from chaos.lab.http.resources import RESOURCES, RequestInfo, Resource
from chaos.lab.objects import Object

_GVK = "x-kubernetes-group-version-kind"


@dataclass(frozen=True, slots=True)
class PatchMeta:
    """Schema of a field; with an empty schema, maps are merged and lists replaced."""

    schema: dict[str, Any]

    @property
    def merge_key(self) -> str:
        """Key by which a list of maps is merged; "" for other lists."""
        return str(self.schema.get("x-kubernetes-patch-merge-key", "")) if self._has_strategy("merge") else ""

    @property
    def is_set(self) -> bool:
        """Whether a list is merged as a set."""
        return self._has_strategy("merge") and not self.merge_key

    @property
    def has_replace_strategy(self) -> bool:
        return self._has_strategy("replace")

    def _has_strategy(self, name: str) -> bool:
        return name in self.schema.get("x-kubernetes-patch-strategy", "").split(",")

    def child(self, name: str) -> PatchMeta:
        properties = resolve_reference(resolve_reference(self.schema).get("items", self.schema)).get("properties", {})
        return PatchMeta(properties.get(name, {}))


def resolve_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Schema that a reference points to, also inside an allOf, which is used for defaults."""
    (inner,) = schema.get("allOf", (schema,))
    reference = inner.get("$ref")
    return schemas()[reference.rpartition("/")[2]] if reference else inner


def schema_of(resource: Resource) -> dict[str, Any]:
    """Schema of a resource's kind."""
    group, _, version = resource.group_version.rpartition("/")
    gvk = {"group": group, "kind": resource.kind, "version": version}
    return next(schema for schema in schemas().values() if gvk in schema.get(_GVK, ()))


@cache
def patch_meta_of(plural: str) -> PatchMeta:
    """Patch metadata of a resource by plural."""
    return PatchMeta(schema_of(next(item for item in RESOURCES.values() if item.plural == plural)))


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


@dataclass(frozen=True, slots=True)
class ValidatedObject:
    """An object to store, and warnings for its sender."""

    object: Object
    warnings: list[str]

    def headers(self) -> dict[str, str]:
        """Warning header (RFC 7234, 5.5), as of k8s.io/apimachinery/pkg/util/net."""
        texts = ['299 - "{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"')) for text in self.warnings]
        return {"Warning": ", ".join(texts)} if texts else {}


def validate_object(obj: Any, info: RequestInfo, validation: str = "Ignore") -> ValidatedObject:
    """Validate kind, name and namespace against the URL, and drop unknown fields. Raises ApiError 400.

    ``validation`` of unknown fields: Ignore, Warn, or Strict, which rejects the object.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise ApiError(400, "metadata: Required value")
    _match_url(obj, metadata, info)
    type_errors, unknown = check_types(obj, info.resource)
    if type_errors:
        raise _decode_error(info, f"json: {type_errors[0]}")
    unknown = [f'unknown field "{path}"' for path in unknown]
    if unknown and validation == "Strict":
        raise _decode_error(info, f"strict decoding error: {', '.join(unknown)}")
    stored = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return ValidatedObject(stored, unknown if validation == "Warn" else [])


def _match_url(obj: Object, metadata: Object, info: RequestInfo) -> None:
    for field, expected in (("kind", info.resource.kind), ("apiVersion", info.resource.group_version)):
        if (obj.get(field) or expected) != expected:
            raise ApiError(400, f"{field} {obj[field]!r} does not match the expected {expected!r}")
    for field, expected in (("namespace", info.namespace), ("name", info.name)):
        if expected and (metadata.get(field) or expected) != expected:
            raise ApiError(400, f"the {field} of the object ({metadata[field]}) does not match the URL's ({expected})")
        if expected:
            metadata[field] = expected


def _decode_error(info: RequestInfo, reason: str) -> ApiError:
    kind, version = info.resource.kind, info.resource.group_version.rpartition("/")[2]
    return ApiError(400, f'{kind} in version "{version}" cannot be handled as a {kind}: {reason}')
