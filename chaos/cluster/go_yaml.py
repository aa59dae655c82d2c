"""YAML as client-go reads it: what it takes for text, and for left out. Source: sigs.k8s.io/yaml."""

# ruff: noqa: PLC0415 - yaml is slow to import
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chaos.core.errors import BadInput, Problem

_MAX_DEPTH = 200
_MAX_VALUES = 1_000_000  # in a document, each alias counted as what it stands for


def load_yaml(where: str, content: bytes) -> Any:
    """The first document of ``content``, without empty values, as client-go reads YAML. Raises BadInput."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Without timestamps: to client-go they are text."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        _refuse_deep(yaml.parse(content, Loader))
        first = next(yaml.load_all(content, Loader), None)
        return _without_nulls(first, iter(range(_MAX_VALUES)))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        why = getattr(error, "problem", None) or "it is too deep, or has too many aliases"
        raise BadInput([Problem(where, line, column, f"it cannot be read as a kubeconfig: {why}")]) from error


def _refuse_deep(events: Iterable[Any]) -> None:
    """Raises ValueError for a first document that is too deep: the C library would compose it by recursion."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        if depth > _MAX_DEPTH:
            raise ValueError
        if name == "DocumentEndEvent":
            return


def _without_nulls(value: Any, room: Iterator[int], *, is_raw: bool = False) -> Any:
    """Without empty values: to client-go they are keys that are left out, and empty texts in lists.

    What others have written below ``extension`` is left as it is. Raises ValueError for too many aliases.
    """
    if next(room, None) is None:
        raise ValueError
    if isinstance(value, dict):
        return {
            str(key): _without_nulls(item, room, is_raw=is_raw or key == "extension")
            for key, item in value.items()
            if item is not None or is_raw
        }
    if isinstance(value, list):
        return ["" if item is None and not is_raw else _without_nulls(item, room, is_raw=is_raw) for item in value]
    return value
