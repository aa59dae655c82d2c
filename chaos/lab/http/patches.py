"""JSON merge patches (RFC 7396) and JSON patches (RFC 6902).

Strategic merge patches, as k8s.io/apimachinery/pkg/util/strategicpatch applies them.
An applied patch leaves no nulls and no directives in the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chaos.lab.apiserver.store import clone
from chaos.lab.http.errors import ApiError
from chaos.lab.http.schemas import PatchMeta
from chaos.lab.objects import Object


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch to a copy of ``target``."""
    if not isinstance(patch, dict):
        return clone(patch)
    result = clone(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """Apply a JSON patch to a copy of ``target``. Raises ApiError 400 or 422."""
    if not isinstance(operations, list):
        raise ApiError(400, "a JSON patch is a list of operations")
    result = clone(target)
    for operation in operations:
        try:
            result = _apply(result, operation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise ApiError(
                422, f"the server rejected our request due to an error in our request: {operation}"
            ) from error
    return result


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    op, path = operation["op"], _path(operation["path"])
    if op in ("copy", "move"):
        source = _path(operation["from"])
        value = clone(_get(document, source))
        return _add(_remove(document, source) if op == "move" else document, path, value)
    if op == "test":
        if _get(document, path) != operation["value"]:
            raise ApiError(422, f"testing value {operation['path']} failed")
        return document
    if op == "remove":
        return _remove(document, path)
    if op == "replace":
        _get(document, path)
        return _add(_remove(document, path), path, clone(operation["value"])) if path else clone(operation["value"])
    if op == "add":
        return _add(document, path, clone(operation["value"]))
    raise ValueError(op)


def _path(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _get(document: Any, path: list[str]) -> Any:
    for key in path:
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        index = len(parent) if path[-1] == "-" else int(path[-1])
        if not 0 <= index <= len(parent):
            raise IndexError(index)
        parent.insert(index, value)
    else:
        parent[path[-1]] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    parent = _get(document, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return document


_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def strategic_merge(target: Object, patch: Any, meta: PatchMeta) -> Object:
    """Apply a strategic merge patch to a copy of ``target``. Raises ApiError 400."""
    if not isinstance(patch, dict):
        raise ApiError(400, "a strategic merge patch is an object")
    return _merge_map(clone(target), clone(patch), meta)


def _merge_map(original: Object, patch: Object, meta: PatchMeta) -> Object:
    if _DIRECTIVE in patch:
        directive = patch.pop(_DIRECTIVE)
        if directive not in ("replace", "delete"):
            raise _bad_patch(f"unknown patch type {directive!r}")
        return _strip_directives(patch) if directive == "replace" else {}
    if _RETAIN in patch:
        _retain_keys(original, patch, _require_list(_RETAIN, patch.pop(_RETAIN)))
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _merge_in_order(original, patch, key, meta)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            name = key.removeprefix(_DELETE)
            deleted = _require_list(key, value)
            if original.get(name):
                original[name] = [item for item in _require_list(name, original[name]) if item not in deleted]
        elif value is None:
            original.pop(key, None)
        else:
            _merge_field(original, key, value, meta.child(key))
    return original


def _merge_field(original: Object, key: str, value: Any, meta: PatchMeta) -> None:
    old = original.get(key)
    if isinstance(old, dict) and isinstance(value, dict) and not meta.has_replace_strategy:
        original[key] = _merge_map(old, value, meta)
    elif isinstance(old, list) and isinstance(value, list):
        original[key] = _merge_list(old, value, meta)
    elif _is_directive(value):
        original.pop(key, None)
    else:
        original[key] = _strip_directives(value)


def _merge_list(old: list[Any], new: list[Any], meta: PatchMeta) -> list[Any]:
    if meta.is_set:
        return _sort_by_order([*old, *(item for item in new if item not in old)], new, old, "")
    key = meta.merge_key
    if not key:
        return new
    old, new = _split_directives(old, new, key)
    merged = list(old)
    for item in new:
        indices = [index for index, known in enumerate(merged) if known[key] == _merge_key_of(item, key)]
        if indices:
            merged[indices[0]] = _merge_map(merged[indices[0]], item, meta)
        else:
            merged.append(_strip_directives(item))
    return _sort_by_order(merged, new, old, key)


def _split_directives(old: list[Any], new: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The lists without directive items, after these were applied: $patch delete, or replace for the whole list."""
    plain = [item for item in new if not _is_directive(item)]
    directives = [item for item in new if _is_directive(item)]
    for item in directives:
        if item[_DIRECTIVE] not in ("delete", "replace"):
            raise _bad_patch(f"unknown patch type {item[_DIRECTIVE]!r} in a list")
    if any(item[_DIRECTIVE] == "replace" for item in directives):
        return [], plain
    deleted = [_merge_key_of(item, key) for item in directives]
    return [item for item in old if _merge_key_of(item, key) not in deleted], plain


def _merge_in_order(original: Object, patch: Object, directive: str, meta: PatchMeta) -> None:
    """Merge the list that $setElementOrder names, and sort it in this order."""
    order, name = _require_list(directive, patch.pop(directive)), directive.removeprefix(_ORDER)
    if name not in original and name not in patch:
        return
    child = meta.child(name)
    key = child.merge_key
    old, new = _require_list(name, original.get(name, [])), _require_list(name, patch.pop(name, []))
    keys = iter([_merge_key_of(item, key) for item in order])
    for item in new:
        if order and not _is_directive(item) and _merge_key_of(item, key) not in keys:
            raise _bad_patch(f"the order in patch list {name} doesn't match {directive}")
    merged = _merge_list(old, new, child) if new else old
    # Go deletes and appends in the array of the old list, so new items are at the positions of deleted ones.
    remaining = [item for item in old if any(_merge_key_of(item, key) == _merge_key_of(other, key) for other in merged)]
    added = [item for item in new if not _is_directive(item) and item not in remaining]
    original[name] = _sort_by_order(merged, order, [*remaining, *added][: len(old)], key)


def _sort_by_order(merged: list[Any], order: Sequence[Any], before: Sequence[Any], key: str) -> list[Any]:
    """Items of ``order`` in that order, and the server's other items at their previous positions among them."""
    positions = [_merge_key_of(item, key) for item in order]
    previous = [_merge_key_of(item, key) for item in before]
    ordered = [item for item in merged if _merge_key_of(item, key) in positions]
    ordered.sort(key=lambda item: positions.index(_merge_key_of(item, key)))
    rest = [item for item in merged if _merge_key_of(item, key) not in positions]
    result = []
    while ordered and rest:
        left, right = _merge_key_of(rest[0], key), _merge_key_of(ordered[0], key)
        source = rest if right in previous and previous.index(left) < previous.index(right) else ordered
        result.append(source.pop(0))
    return [*result, *ordered, *rest]


def _retain_keys(original: Object, patch: Object, keys: list[Any]) -> None:
    for key, value in patch.items():
        if value is not None and not key.startswith((_ORDER, _DELETE)) and key not in keys:
            raise _bad_patch(f"{_RETAIN} lacks {key}")
    for key in original.keys() - set(keys):
        del original[key]


def _strip_directives(value: Any) -> Any:
    """Copy of ``value`` without nulls and directives."""
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


def _bad_patch(reason: str) -> ApiError:
    return ApiError(400, f"invalid patch: {reason}")
