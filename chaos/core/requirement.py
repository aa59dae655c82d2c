"""Requirements of an experiment on facts, as ``>0`` or ``>= 30s``."""

from __future__ import annotations

import operator
import re
from typing import Any

from chaos.core.duration import parse_duration

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
        raise ValueError(f"invalid requirement {text!r}; write it like '>0' or '>= 30s'")
    return match[1] or "=", seconds(match[2])


def seconds(value: Any) -> float:
    """A number, or the seconds of a duration. Raises ValueError."""
    if isinstance(value, int | float):
        return float(value)
    text = str(value)
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else parse_duration(text)


def satisfies(value: float, text: str) -> bool:
    """Whether ``value`` meets the requirement. Raises ValueError if that is invalid."""
    symbol, number = parse_requirement(text)
    return bool(_OPERATORS[symbol](value, number))
