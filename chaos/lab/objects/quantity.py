"""Quantities of Kubernetes such as ``10m``, ``1.5``, ``8Mi`` and ``1e3``."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_PATTERN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)", re.ASCII)
_FACTORS: dict[str | None, Fraction] = {None: Fraction(1), "m": Fraction(1, 1000)}
_FACTORS |= {unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", start=1)}
_FACTORS |= {f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", start=1)}


@lru_cache(maxsize=4096, typed=True)
def parse_quantity(text: str | int | float) -> Fraction:
    """Exact value of a quantity or JSON number. Raises ValueError."""
    found = _PATTERN.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, exponent, unit = found.groups()
    return Fraction(f"{number}{exponent or ''}") * _FACTORS[unit]
