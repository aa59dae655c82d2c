"""Bands of measures over the outcomes of many seeds. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from chaos.verdicts.outcome.measure import Measure, Outcome


class Band(Struct, frozen=True):
    """Times of one measure in seconds, over the ``happened`` of ``outcomes`` in which it came true."""

    measure: Measure
    outcomes: int
    happened: int
    low: float
    p5: float
    p50: float
    p95: float
    high: float

    @property
    def share(self) -> float:
        """Share of outcomes in which it happened: more than 0, at most 1."""
        return self.happened / self.outcomes


def bands(outcomes: Iterable[Outcome]) -> dict[Measure, Band]:
    """The band of each measure that came true in at least one outcome, sorted by its median."""
    values: dict[Measure, list[float]] = defaultdict(list)
    number = 0
    for outcome in outcomes:
        number += 1
        for measure, seconds in outcome.seconds.items():
            values[measure].append(seconds)
    found = [_band(measure, sorted(times), number) for measure, times in values.items()]
    return {band.measure: band for band in sorted(found, key=lambda band: (band.p50, band.measure))}


def _band(measure: Measure, times: list[float], outcomes: int) -> Band:
    p5, p50, p95 = (quantile(times, share) for share in (0.05, 0.5, 0.95))
    return Band(measure, outcomes, len(times), times[0], p5, p50, p95, times[-1])


def quantile(ordered: Sequence[float], share: float) -> float:
    """Quantile of sorted numbers, interpolated linearly between neighbours."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (position - low) * (ordered[high] - ordered[low]), 3)
