"""Strategic merge patches, as k8s.io/apimachinery/pkg/util/strategicpatch applies them.

A patch that was accepted leaves no null and no directive behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.patch_meta import PatchMeta
from chaos.lab.apiserver.store.store import clone
from chaos.lab.objects.accessors import Object

_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def strategic_merge(target: Object, patch: Any, shape: PatchMeta) -> Object:
    """``target`` patched; neither is changed. Raises ApiError 400."""
    if not isinstance(patch, dict):
        raise ApiError(400, "a strategic merge patch is an object")
    return _merge_map(clone(target), clone(patch), shape)


def _merge_map(original: Object, patch: Object, shape: PatchMeta) -> Object:
    if _DIRECTIVE in patch:
        directive = patch.pop(_DIRECTIVE)
        if directive not in ("replace", "delete"):
            raise _bad_patch(f"unknown patch type {directive!r}")
        return _strip_directives(patch) if directive == "replace" else {}
    if _RETAIN in patch:
        _retain_keys(original, patch, _require_list(_RETAIN, patch.pop(_RETAIN)))
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _merge_in_order(original, patch, key, shape)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            name = key.removeprefix(_DELETE)
            gone = _require_list(key, value)
            if original.get(name):
                original[name] = [item for item in _require_list(name, original[name]) if item not in gone]
        elif value is None:
            original.pop(key, None)
        else:
            _merge_field(original, key, value, shape.child(key))
    return original


def _merge_field(original: Object, key: str, value: Any, shape: PatchMeta) -> None:
    old = original.get(key)
    if isinstance(old, dict) and isinstance(value, dict) and not shape.has_replace_strategy:
        original[key] = _merge_map(old, value, shape)
    elif isinstance(old, list) and isinstance(value, list):
        original[key] = _merge_list(old, value, shape)
    elif _is_directive(value):
        original.pop(key, None)
    else:
        original[key] = _strip_directives(value)


def _merge_list(old: list[Any], new: list[Any], shape: PatchMeta) -> list[Any]:
    if shape.is_set:
        return _sort_by_order([*old, *(item for item in new if item not in old)], new, old, "")
    key = shape.merge_key
    if not key:
        return new
    old, new = _split_directives(old, new, key)
    merged = list(old)
    for item in new:
        same = [index for index, known in enumerate(merged) if known[key] == _merge_key_of(item, key)]
        if same:
            merged[same[0]] = _merge_map(merged[same[0]], item, shape)
        else:
            merged.append(_strip_directives(item))
    return _sort_by_order(merged, new, old, key)


def _split_directives(old: list[Any], new: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The two lists after the items of the patch that are directives: $patch delete, and replace for the whole list."""
    plain = [item for item in new if not _is_directive(item)]
    special = [item for item in new if _is_directive(item)]
    for item in special:
        if item[_DIRECTIVE] not in ("delete", "replace"):
            raise _bad_patch(f"unknown patch type {item[_DIRECTIVE]!r} in a list")
    if any(item[_DIRECTIVE] == "replace" for item in special):
        return [], plain
    gone = [_merge_key_of(item, key) for item in special]
    return [item for item in old if _merge_key_of(item, key) not in gone], plain


def _merge_in_order(original: Object, patch: Object, directive: str, shape: PatchMeta) -> None:
    """The list that $setElementOrder names: merged, then brought into the order."""
    order, name = _require_list(directive, patch.pop(directive)), directive.removeprefix(_ORDER)
    if name not in original and name not in patch:
        return
    child = shape.child(name)
    key = child.merge_key
    old, new = _require_list(name, original.get(name, [])), _require_list(name, patch.pop(name, []))
    wanted = iter([_merge_key_of(item, key) for item in order])
    for item in new:
        if order and not _is_directive(item) and _merge_key_of(item, key) not in wanted:
            raise _bad_patch(f"the order in patch list {name} doesn't match {directive}")
    merged = _merge_list(old, new, child) if new else old
    # Go deletes and appends in the array of the old list: new items stand at the places of deleted ones.
    kept = [item for item in old if any(_merge_key_of(item, key) == _merge_key_of(other, key) for other in merged)]
    added = [item for item in new if not _is_directive(item) and item not in kept]
    original[name] = _sort_by_order(merged, order, [*kept, *added][: len(old)], key)


def _sort_by_order(merged: list[Any], order: Sequence[Any], before: Sequence[Any], key: str) -> list[Any]:
    """What ``order`` names in that order, and the rest, which only the server has, at its old places among them."""
    wanted = [_merge_key_of(item, key) for item in order]
    known = [_merge_key_of(item, key) for item in before]
    named = [item for item in merged if _merge_key_of(item, key) in wanted]
    named.sort(key=lambda item: wanted.index(_merge_key_of(item, key)))
    rest = [item for item in merged if _merge_key_of(item, key) not in wanted]
    result = []
    while named and rest:
        left, right = _merge_key_of(rest[0], key), _merge_key_of(named[0], key)
        first = rest if right in known and known.index(left) < known.index(right) else named
        result.append(first.pop(0))
    return [*result, *named, *rest]


def _retain_keys(original: Object, patch: Object, keys: list[Any]) -> None:
    for key, value in patch.items():
        if value is not None and not key.startswith((_ORDER, _DELETE)) and key not in keys:
            raise _bad_patch(f"{_RETAIN} lacks {key}")
    for key in original.keys() - set(keys):
        del original[key]


def _strip_directives(value: Any) -> Any:
    """``value`` without nulls and directives."""
    if isinstance(value, dict):
        return {
            key: _strip_directives(item)
            for key, item in value.items()
            if item is not None and not key.startswith((_ORDER, _DELETE, _RETAIN)) and not _is_directive(item)
        }
    if isinstance(value, list):
        return [_strip_directives(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and _DIRECTIVE in item


def _merge_key_of(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict) or key not in item:
        raise _bad_patch(f"map: {item} does not contain declared merge key: {key}")
    return item[key]


def _require_list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _bad_patch(f"{name} is not a list")
    return value


def _bad_patch(why: str) -> ApiError:
    return ApiError(400, f"invalid patch: {why}")
