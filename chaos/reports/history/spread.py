"""Median and spread of durations, of which some are only known to exceed a bound (infinity)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Quartiles in seconds; infinite where so many values exceed their bound that the quartile is one of them."""

    count: int
    first: float
    median: float
    third: float


def spread(values: Sequence[float]) -> Spread | None:
    """The quartiles of ``values``, interpolated linearly between neighbours; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return Spread(len(ordered), *(_quantile(ordered, share) for share in (0.25, 0.5, 0.75)))


def _quantile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    if position == low:
        return ordered[low]
    if math.isinf(ordered[low + 1]):
        return math.inf
    return ordered[low] + (position - low) * (ordered[low + 1] - ordered[low])
