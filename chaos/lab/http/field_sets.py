"""Types of fields in server-side apply: atomic, or a map or list of fields.

Source: x-kubernetes-list-type, -list-map-keys and -map-type; kube-openapi/pkg/schemaconv.
Field sets: comparison, merge and removal of fields, as field_type/ of sigs.k8s.io/structured-merge-diff.
A path consists of the names of fieldsV1: ``f:NAME`` in a map, ``k:{...}`` and ``v:...`` in a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import msgspec

from chaos.lab.http.resources import Resource
from chaos.lab.http.schemas import resolve_reference, schema_of


class FieldType:
    """Type of a field; children are created on first use."""

    def __init__(self, field: dict[str, Any]) -> None:
        self._field, self._schema = field, resolve_reference(field)
        self._properties: dict[str, Any] = self._schema.get("properties", {})
        self._children: dict[str, FieldType] = {}
        self.list_map_keys: list[str] = field.get("x-kubernetes-list-map-keys", [])
        self.is_leaf = self._is_leaf()
        self.is_struct = bool(self._properties)

    def _is_leaf(self) -> bool:
        if self._schema.get("type") == "array":
            return bool(self._field.get("x-kubernetes-list-type", "atomic") == "atomic")
        if not (self._properties or self._schema.get("additionalProperties")):
            return True
        relation = self._field.get("x-kubernetes-map-type") or self._schema.get("x-kubernetes-map-type")
        return bool(relation == "atomic")

    def has_field(self, name: str) -> bool:
        """Whether the struct has a field of this path element."""
        return name.startswith("f:") and name[2:] in self._properties

    def child(self, key: str) -> FieldType:
        """Type of a field of a struct or map; an unknown field is a leaf."""
        if key not in self._properties:
            return self._additional_type
        if key not in self._children:
            self._children[key] = FieldType(self._properties[key])
        return self._children[key]

    @cached_property
    def _additional_type(self) -> FieldType:
        return FieldType(self._schema.get("additionalProperties") or {})

    @cached_property
    def item_type(self) -> FieldType:
        """Type of the items of a list."""
        return FieldType(self._schema.get("items", {}))

    def child_at(self, name: str) -> FieldType:
        """Type at a path element."""
        return self.child(name[2:]) if name.startswith("f:") else self.item_type


LEAF = FieldType({})


@cache
def field_type_of(resource: Resource) -> FieldType:
    """Type of the objects of a resource."""
    return FieldType(schema_of(resource))


Path = tuple[str, ...]
Fields = frozenset[Path]
_DEFAULTS = {"protocol": "TCP"}  # of list map keys: ContainerPort, ServicePort
_MISSING: Any = object()


class SchemaError(ValueError):
    """A list that does not fit its schema."""


def fields_of(value: Any, field_type: FieldType, path: Path = ()) -> Iterator[Path]:
    """Paths that a manager owns after an apply of ``value``. Raises SchemaError."""
    if _is_leaf(value, field_type):
        yield path
        return
    for name, (child, child_type) in _children(value, field_type).items():
        here = (*path, name)
        if child == {} or not field_type.has_field(name):
            yield here
        yield from fields_of(child, child_type, here)


def differences(old: Any, new: Any, field_type: FieldType, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Paths that differ, and whether each was removed. Raises SchemaError."""
    if (_is_leaf(old, field_type) and _is_leaf(new, field_type)) or not (_is_nonempty(old) or _is_nonempty(new)):
        if old is _MISSING or new is _MISSING or old != new:
            yield path, new is _MISSING
        return
    olds, news = _children(old, field_type), _children(new, field_type)
    for name in olds | news:
        before, after = olds.get(name, (_MISSING, LEAF)), news.get(name, (_MISSING, LEAF))
        child_type = after[1] if before[0] is _MISSING else before[1]
        yield from differences(before[0], after[0], child_type, (*path, name))
    if old is _MISSING or new is _MISSING:
        yield path, new is _MISSING


def merge(old: Any, new: Any, field_type: FieldType) -> Any:
    """Merge ``new`` into ``old``, without changing either. Raises SchemaError."""
    if new is _MISSING:
        return old
    if _is_leaf(new, field_type) or type(old) is not type(new):
        return new
    if isinstance(new, list):
        return _merge_lists(old, new, field_type)
    return {**old, **{key: merge(old.get(key, _MISSING), item, field_type.child(key)) for key, item in new.items()}}


def _merge_lists(old: list[Any], new: list[Any], field_type: FieldType) -> list[Any]:
    """Items of ``new`` in its order, with the items that only ``old`` has at their previous positions."""
    news = {path_element(item, field_type): item for item in new}
    olds = {
        name: item if child_type is not LEAF else _MISSING
        for name, (item, child_type) in _children(old, field_type).items()
    }
    rest, shared, result = list(news), [name for name in news if name in olds], []

    def take() -> str:
        name = rest.pop(0)
        result.append(merge(olds.get(name, _MISSING), news[name], field_type.item_type))
        return name

    for item in old:
        name = path_element(item, field_type)
        if name not in news:
            result.append(item)
        elif shared and name == shared[0]:
            shared.pop(0)
            while take() != name:
                pass
        elif not shared and rest:
            take()
    while rest:
        take()
    return result


def remove_fields(value: Any, field_type: FieldType, paths: Fields) -> Any:
    """``value`` without ``paths``, and without maps and lists that become empty. Raises SchemaError."""
    rest = _remove_fields(value, field_type, paths, ())
    return {} if rest is _MISSING else rest


def _remove_fields(value: Any, field_type: FieldType, paths: Fields, path: Path) -> Any:
    if _is_leaf(value, field_type) or not value:
        return value
    if isinstance(value, list):
        elements = [((*path, path_element(item, field_type)), item) for item in value]
        items = [
            _remove_fields(item, field_type.item_type, paths, here) for here, item in elements if here not in paths
        ]
        return [item for item in items if item is not _MISSING] or _MISSING
    result = {}
    for key, item in value.items():
        here = (*path, "f:" + key)
        if here not in paths and (rest := _remove_fields(item, field_type.child(key), paths, here)) is not _MISSING:
            result[key] = rest
    return result or _MISSING


def add_structs(fields: Fields, field_type: FieldType) -> Fields:
    """Add the structs on the paths, as far as the schema declares them: EnsureNamedFieldsAreMembers."""
    result = set(fields)
    for path in fields:
        at = field_type
        for depth, name in enumerate(path[:-1], 1):
            if at.has_field(name):
                result.add(path[:depth])
            at = at.child_at(name)
    return frozenset(result)


def path_element(item: Any, field_type: FieldType) -> str:
    """Path element of a list item. Raises SchemaError."""
    if not field_type.list_map_keys:
        if item is None or isinstance(item, dict | list):
            raise SchemaError("associative list without keys has an element that's no scalar")
        return "v:" + msgspec.json.encode(item).decode()
    if not isinstance(item, dict):
        raise SchemaError("associative list with keys may not have non-map elements")
    values = {key: item.get(key, _DEFAULTS.get(key)) for key in sorted(field_type.list_map_keys)}
    keys_present = {key: value for key, value in values.items() if value is not None}
    if not keys_present:
        keys = " ".join(f'"{key}"' for key in field_type.list_map_keys)
        raise SchemaError(f"associative list with keys has an element that omits all key fields [{keys}]")
    return "k:" + msgspec.json.encode(keys_present).decode()


def _is_leaf(value: Any, field_type: FieldType) -> bool:
    return field_type.is_leaf or not isinstance(value, dict | list)


def _is_nonempty(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _children(value: Any, field_type: FieldType) -> dict[str, tuple[Any, FieldType]]:
    """Values and types by path element; list items with the same path element are one leaf."""
    if isinstance(value, dict):
        return {"f:" + key: (item, field_type.child(key)) for key, item in value.items()}
    if not isinstance(value, list):
        return {}
    result: dict[str, list[Any]] = {}
    for item in value:
        result.setdefault(path_element(item, field_type), []).append(item)
    return {
        name: (items[0], field_type.item_type) if len(items) == 1 else (items, LEAF) for name, items in result.items()
    }
