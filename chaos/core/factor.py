"""Factors of deadlines: ``2`` and ``1.5x``, at least 1."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

_LIMIT = 100.0
_TEXT = re.compile(r"(\d+(?:\.\d+)?)x?", re.ASCII)


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
