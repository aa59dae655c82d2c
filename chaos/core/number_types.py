"""Types of fields that are numbers: factors, versions and counts.

Factors of deadlines are ``2`` and ``1.5x``, at least 1; versions of Kubernetes are minor ones, in ranges as
``>=v1.32, <v1.36``; counts are whole numbers or percentages.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from chaos.core.json_schema import JsonSchema, matching

_LIMIT = 100.0
_TEXT = re.compile(r"(\d+(?:\.\d+)?)x?", re.ASCII)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_BOUND = re.compile(r"(>=|<=|==|>|<|=)\s*v?(\d{1,3})\.(\d{1,3})", re.ASCII)
_OPERATORS = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq, "==": operator.eq,
}  # fmt: skip


def parse_factor(value: Any) -> float:
    """The factor ``value``: a number, or a text like ``3x``. Raises ValueError unless it is from 1 to 100."""
    text = "" if isinstance(value, bool) else str(value)[:20]
    match = _TEXT.fullmatch(text)
    factor = float(match[1]) if match else math.nan
    if not 1 <= factor <= _LIMIT:
        raise ValueError(f"{str(value)[:20]!r} is not a factor from 1 to {_LIMIT:g}; write it like 2 or 1.5x")
    return factor


Factor = Annotated[
    float,
    BeforeValidator(parse_factor),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 1, "maximum": _LIMIT},
                {"type": "string", "pattern": r"^\d+(\.\d+)?x?$"},
            ],
            "examples": ["3x", 1.5],
        }
    ),
]


def parse_minor(text: str) -> tuple[int, int] | None:
    """Major and minor version of ``v1.33.2`` or ``v1.33.2-gke.100``; None for any other text."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else None


def in_range(version: tuple[int, int], text: str) -> bool:
    """Whether the minor version is within all bounds of ``text``. Raises ValueError."""
    return all(_OPERATORS[symbol](version, bound) for symbol, bound in _bounds(text))


def _bounds(text: str) -> list[tuple[str, tuple[int, int]]]:
    bounds = []
    for part in text.split(","):
        match = _BOUND.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a range of versions; write it like '>=v1.32' or '>=v1.32, <v1.36'")
        bounds.append((match[1], (int(match[2]), int(match[3]))))
    return bounds


def _check(text: str) -> str:
    _bounds(text)
    return text


_ONE_BOUND = r"\s*(?:>=|<=|==|>|<|=)\s*v?[0-9]{1,3}\.[0-9]{1,3}\s*"
VersionRange = Annotated[str, AfterValidator(_check), matching(f"{_ONE_BOUND}(?:,{_ONE_BOUND})*")]


def _number_or_percentage(what: str, least: int) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        text = str(value)[:20]
        number = text.removesuffix("%")
        fits = type(value) in (int, str) and number.isascii() and number.isdigit() and int(number) >= least
        if not fits or (text != number and int(number) > 100):
            raise ValueError(f"{what} must be a whole number from {least} or a percentage like 25%, not {text!r}")
        return value

    return check


_ZERO_OR_MORE = {"type": "string", "pattern": "^(?:[0-9]+|0*(?:[0-9]|[1-9][0-9]|100)%)$"}
_ONE_OR_MORE = {"type": "string", "pattern": "^(?:0*[1-9][0-9]*|0*(?:[1-9][0-9]?|100)%)$"}
CountOrPercentage = Annotated[
    int | str,
    BeforeValidator(_number_or_percentage("count", 1)),
    JsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, _ONE_OR_MORE]}),
]
SpareOrPercentage = Annotated[
    int | str,
    BeforeValidator(_number_or_percentage("unavailable-at-most", 0)),
    JsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, _ZERO_OR_MORE]}),
]
