"""Differences between two versions of an observed object, by path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, to_builtins

from chaos.core.text import printable

_MAX_LENGTH, _MAX_CHANGES = 300, 40
# Change with every write and explain none.
_NOISE = frozenset({"resourceVersion", "managedFields", "lastHeartbeatTime", "observedGeneration"})
# Fields that identify the elements of a list, so that one element more does not shift the others.
_KEYS = ("type", "name", "key", "uid", "containerPort", "ip", "address")

Change = tuple[str, str, str]  # path, before, after; "" where the field is missing


def object_diff(before: Any, after: Any) -> list[Change]:
    """Fields that differ, sorted by path, at most 40."""
    found = sorted(_differences("", _plain(before), _plain(after)), key=lambda change: change[0])
    return [(printable(path, _MAX_LENGTH), _shown(old), _shown(new)) for path, old, new in found[:_MAX_CHANGES]]


def _shown(value: Any) -> str:
    return "" if value is None else printable(str(value), _MAX_LENGTH)


def _plain(value: Any) -> Any:
    return to_builtins(value, str_keys=True) if isinstance(value, Struct) else value


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Scalars that differ; None stands for a missing one. Equal parts are not searched."""
    if old == new:
        return
    before, after = _parts(old), _parts(new)
    for key in before.keys() | after.keys():
        inner = key if not path or key.startswith("[") else f".{key}"
        yield from _differences(path + inner, before.get(key), after.get(key))
    old, new = (None if isinstance(value, dict | list) else value for value in (old, new))
    if old != new:
        yield path, old, new


def _parts(value: Any) -> dict[str, Any]:
    """Fields of an object, elements of a list by what identifies them; none of a scalar."""
    if isinstance(value, dict):
        return {key: inner for key, inner in value.items() if key not in _NOISE}
    if isinstance(value, list):
        return {f"[{_element(inner, index)}]": inner for index, inner in enumerate(value)}
    return {}


def _element(value: Any, index: int) -> str:
    if isinstance(value, dict):
        for key in _KEYS:
            if value.get(key):
                return str(value[key])
    return str(index)
