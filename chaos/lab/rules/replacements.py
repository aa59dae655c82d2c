"""Replacements of one field of the rules, written out as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, get_type_hints

import msgspec

from chaos.lab.rules import Rules

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "sum": sum, "ceil": math.ceil, "floor": math.floor,
}  # fmt: skip


def replaced(rules: Rules, text: str) -> Rules:
    """``COMPONENT.FIELD=VALUE``; the value in JSON, quotes of a text may be left out. Raises ValueError."""
    name, _, written = text.partition("=")
    component, _, field = name.partition(".")
    if component not in Rules.__slots__:
        raise ValueError(f"breakage {text!r}: no component {component!r}{did_you_mean(component, Rules.__slots__)}")
    record = getattr(rules, component)
    types = get_type_hints(type(record))
    if field not in types:
        raise ValueError(f"breakage {text!r}: no rule {field!r} of {component}{did_you_mean(field, types)}")
    value = _value(text, written, types[field], is_function=callable(getattr(record, field)))
    return replace(rules, **{component: replace(record, **{field: value})})


def _value(text: str, written: str, type_: Any, *, is_function: bool) -> Any:
    if is_function:
        if written in _FUNCTIONS:
            return _FUNCTIONS[written]
        raise ValueError(f"breakage {text!r}: {written!r} is none of {', '.join(_FUNCTIONS)}")
    try:
        value = msgspec.json.decode(written)
    except msgspec.DecodeError:
        value = written
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise ValueError(f"breakage {text!r}: {error}") from error


def did_you_mean(unknown: str, known: Collection[str]) -> str:
    """A hint with what is similar, or nothing."""
    near = get_close_matches(unknown, known, 3, 0.5)
    return f"; did you mean: {', '.join(near)}" if near else ""
