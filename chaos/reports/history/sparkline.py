"""A line of block characters: one for each value."""

from __future__ import annotations

import math
from collections.abc import Sequence

_BLOCKS, _DIGITS = "▁▂▃▄▅▆▇█", "12345678"
EXCEEDED, UNKNOWN = "✗", "?"


def sparkline(
    values: Sequence[float | None], encoding: str = "utf-8", bounds: tuple[float, float] | None = None
) -> str:
    """``values`` from the least to the greatest as eight heights; infinity as ``✗``, None as ``?``.

    ``bounds``: the values of the lowest and the highest, instead of those given. Digits, and x, if ``encoding`` lacks
    the characters. Equal values are in the middle.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    low, high = bounds or ((min(known), max(known)) if known else (0.0, 0.0))

    def height(value: float) -> int:
        return max(0, min(7, int((value - low) / (high - low) * 8))) if high > low else 3

    text = "".join(
        UNKNOWN if value is None else EXCEEDED if math.isinf(value) else _BLOCKS[height(value)] for value in values
    )
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(str.maketrans(_BLOCKS + EXCEEDED, _DIGITS + "x"))
    return text
