"""Sets of fields; comparing, merging and pruning by them: typed/ of sigs.k8s.io/structured-merge-diff.

A path is made of the names that fieldsV1 has: ``f:NAME`` in a map, ``k:{...}`` and ``v:...`` in a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from chaos.lab.apiserver.http.typed import LEAF, FieldType

Path = tuple[str, ...]
Fields = frozenset[Path]
_DEFAULTS = {"protocol": "TCP"}  # of keys of lists: ContainerPort, ServicePort
_MISSING: Any = object()


class SchemaError(ValueError):
    """A list that the schema cannot index."""


def fields_of(value: Any, typed: FieldType, path: Path = ()) -> Iterator[Path]:
    """What somebody owns who has applied this. Raises SchemaError."""
    if _is_leaf(value, typed):
        yield path
        return
    for name, (child, its) in _children(value, typed).items():
        here = (*path, name)
        if child == {} or not typed.has_field(name):
            yield here
        yield from fields_of(child, its, here)


def differences(old: Any, new: Any, typed: FieldType, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Paths that differ, with whether they are gone. Raises SchemaError."""
    if (_is_leaf(old, typed) and _is_leaf(new, typed)) or not (_is_nonempty(old) or _is_nonempty(new)):
        if old is _MISSING or new is _MISSING or old != new:
            yield path, new is _MISSING
        return
    olds, news = _children(old, typed), _children(new, typed)
    for name in olds | news:
        before, after = olds.get(name, (_MISSING, LEAF)), news.get(name, (_MISSING, LEAF))
        its = after[1] if before[0] is _MISSING else before[1]
        yield from differences(before[0], after[0], its, (*path, name))
    if old is _MISSING or new is _MISSING:
        yield path, new is _MISSING


def merge(old: Any, new: Any, typed: FieldType) -> Any:
    """``old`` with what ``new`` says. Raises SchemaError."""
    if new is _MISSING:
        return old
    if _is_leaf(new, typed) or type(old) is not type(new):
        return new
    if isinstance(new, list):
        return _merge_lists(old, new, typed)
    return {**old, **{key: merge(old.get(key, _MISSING), item, typed.child(key)) for key, item in new.items()}}


def _merge_lists(old: list[Any], new: list[Any], typed: FieldType) -> list[Any]:
    """The items of ``new`` in its order; those that only ``old`` has stay where they were among them."""
    news = {path_element(item, typed): item for item in new}
    olds = {name: item if its is not LEAF else _MISSING for name, (item, its) in _children(old, typed).items()}
    rest, shared, result = list(news), [name for name in news if name in olds], []

    def take() -> str:
        name = rest.pop(0)
        result.append(merge(olds.get(name, _MISSING), news[name], typed.item_type))
        return name

    for item in old:
        name = path_element(item, typed)
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


def remove_fields(value: Any, typed: FieldType, gone: Fields) -> Any:
    """``value`` without these paths, and without the maps and lists that this empties. Raises SchemaError."""
    left = _remove_fields(value, typed, gone, ())
    return {} if left is _MISSING else left


def _remove_fields(value: Any, typed: FieldType, gone: Fields, path: Path) -> Any:
    if _is_leaf(value, typed) or not value:
        return value
    if isinstance(value, list):
        named = [((*path, path_element(item, typed)), item) for item in value]
        items = [_remove_fields(item, typed.item_type, gone, here) for here, item in named if here not in gone]
        return [item for item in items if item is not _MISSING] or _MISSING
    kept = {}
    for key, item in value.items():
        here = (*path, "f:" + key)
        if here not in gone and (left := _remove_fields(item, typed.child(key), gone, here)) is not _MISSING:
            kept[key] = left
    return kept or _MISSING


def add_structs(fields: Fields, typed: FieldType) -> Fields:
    """Also the fields that a schema declares on the way to these: EnsureNamedFieldsAreMembers."""
    found = set(fields)
    for path in fields:
        at = typed
        for depth, name in enumerate(path[:-1], 1):
            if at.has_field(name):
                found.add(path[:depth])
            at = at.child_at(name)
    return frozenset(found)


def path_element(item: Any, typed: FieldType) -> str:
    """The name of an item in a list. Raises SchemaError."""
    if not typed.list_map_keys:
        if item is None or isinstance(item, dict | list):
            raise SchemaError("associative list without keys has an element that's no scalar")
        return "v:" + msgspec.json.encode(item).decode()
    if not isinstance(item, dict):
        raise SchemaError("associative list with keys may not have non-map elements")
    values = {key: item.get(key, _DEFAULTS.get(key)) for key in sorted(typed.list_map_keys)}
    found = {key: value for key, value in values.items() if value is not None}
    if not found:
        keys = " ".join(f'"{key}"' for key in typed.list_map_keys)
        raise SchemaError(f"associative list with keys has an element that omits all key fields [{keys}]")
    return "k:" + msgspec.json.encode(found).decode()


def _is_leaf(value: Any, typed: FieldType) -> bool:
    return typed.is_leaf or not isinstance(value, dict | list)


def _is_nonempty(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _children(value: Any, typed: FieldType) -> dict[str, tuple[Any, FieldType]]:
    """By name; items of a list that have the same name are one leaf."""
    if isinstance(value, dict):
        return {"f:" + key: (item, typed.child(key)) for key, item in value.items()}
    if not isinstance(value, list):
        return {}
    found: dict[str, list[Any]] = {}
    for item in value:
        found.setdefault(path_element(item, typed), []).append(item)
    return {name: (items[0], typed.item_type) if len(items) == 1 else (items, LEAF) for name, items in found.items()}
