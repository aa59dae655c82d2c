"""YAML as client-go reads it: what it takes for text, and for left out. Source: sigs.k8s.io/yaml."""

# ruff: noqa: PLC0415 - yaml is slow to import
from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from chaos.core.errors import BadInput, Problem

_TAG = "tag:yaml.org,2002:"
_BOOLEANS = ("true", "false", "yes", "no", "on", "off", "y", "n")
# What plain words mean by kind, and their first letters. Source: goyaml.v2 resolve.go.
_PLAIN = (
    ("bool", rf"(?:{'|'.join(f'{word}|{word.title()}|{word.upper()}' for word in _BOOLEANS)})\Z", "yYnNtTfFoO"),
    ("int", r"[-+]?(?:0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[1-9][0-9_]*|0)\Z", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?\Z", "-+0123456789."),
    ("float", r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z", "-+."),
    ("merge", r"<<\Z", "<"),
    ("null", r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
)
_MAX_DEPTH = 200
_MAX_VALUES = 1_000_000  # in a document, each alias counted as what it stands for


def load_yaml(where: str, content: bytes) -> Any:
    """The first document of ``content``, without empty values, as client-go reads YAML. Raises BadInput."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Timestamps and ``1:30`` are text to client-go, ``y`` and ``1e3`` are not."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for kind, pattern, letters in _PLAIN:
        Loader.add_implicit_resolver(f"{_TAG}{kind}", re.compile(pattern), list(letters))
    for kind, construct in (("bool", _is_true), ("int", _int), ("binary", _text_of_base64)):
        Loader.add_constructor(f"{_TAG}{kind}", lambda loader, node, f=construct: f(loader.construct_scalar(node)))
    try:
        _refuse_deep(yaml.parse(content, Loader))
        first = next(yaml.load_all(content, Loader), None)
        return _without_nulls(first, iter(range(_MAX_VALUES)))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        why = getattr(error, "problem", None) or "it is too deep, or has too many aliases"
        raise BadInput([Problem(where, line, column, f"it cannot be read as a kubeconfig: {why}")]) from error


def _is_true(text: str) -> bool:
    return text.lower() in ("y", "yes", "true", "on")


def _int(text: str) -> int:
    digits = text.replace("_", "").lower().replace("0o", "0")
    is_octal = digits.lstrip("+-").startswith("0") and digits.lstrip("+-0").isdigit()
    return int(digits, 8 if is_octal else 0)


def _text_of_base64(text: str) -> str:
    return base64.b64decode("".join(text.split()), validate=True).decode()


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
