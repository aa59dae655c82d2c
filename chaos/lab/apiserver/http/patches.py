"""JSON merge patches (RFC 7396) and JSON patches (RFC 6902)."""

from __future__ import annotations

from typing import Any

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.store import clone


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
