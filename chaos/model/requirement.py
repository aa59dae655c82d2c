"""Tests that an experiment puts to facts, as ``>0`` or ``>= 30s``."""

from __future__ import annotations

import operator
import re
from typing import Any

from chaos.model.duration import parse_duration

_OPERATORS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_REQUIREMENT = re.compile(r"\s*(>=|<=|==|!=|>|<|=)?\s*(\S+)\s*")


def parse_requirement(text: str) -> tuple[str, float]:
    """Operator and number (durations in seconds) of ``">0"`` or ``">= 30s"``. Raises ValueError."""
    match = _REQUIREMENT.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a requirement; write it like '>0' or '>= 30s'")
    return match[1] or "=", seconds(match[2])


def seconds(value: Any) -> float:
    """A number as it is, a duration in seconds. Raises ValueError."""
    if isinstance(value, int | float):
        return float(value)
    text = str(value)
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else parse_duration(text)


def satisfies(value: float, text: str) -> bool:
    """True if ``value`` passes the test. Raises ValueError if it is none."""
    symbol, number = parse_requirement(text)
    return bool(_OPERATORS[symbol](value, number))
