"""Statistics of durations: their spread, their change points and a sparkline. Some only exceed a bound (infinity).

Change points are found by Pettitt's test, repeated on the parts: A. N. Pettitt, "A non-parametric approach to the
change-point problem", Applied Statistics 28 (1979), 126-135. The test uses ranks only, so one outlier is no change, and
a value that only exceeds a bound is simply the highest rank. Its statistic is the greatest |U(t)|, the Mann-Whitney
statistic of the first t values against the others; the probability of a greater one without a change is at most about
2 exp(-6 U^2 / (n^3 + n^2)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


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


MAX_P = 0.05  # probability of a change by chance; the approximation is conservative: 1 to 3 % for 12 to 50 values
MIN_SHIFT = 0.1  # of the median before, below which a change is of no practical meaning
MIN_SECONDS = 0.1  # likewise


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """``index``: of the first value after the change. ``before``, ``after``: medians of the parts beside it."""

    index: int
    before: float
    after: float
    p: float


def change_points(values: Sequence[float]) -> tuple[ChangePoint, ...]:
    """The change points of ``values``, in their order. At least 12 values are needed for one."""
    cuts = sorted(_cuts(values, 0), key=lambda cut: cut[0])
    ends = [0, *(index for index, _ in cuts), len(values)]
    found = []
    for (index, p), begin, end in zip(cuts, ends, ends[2:], strict=False):
        before, after = _median(values[begin:index]), _median(values[index:end])
        if _is_meant(before, after):
            found.append(ChangePoint(index, before, after, p))
    return tuple(found)


def _cuts(values: Sequence[float], offset: int) -> list[tuple[int, float]]:
    """Index and probability of the changes in ``values`` and in both parts, with ``offset`` added to the index."""
    index, p = pettitt(values)
    if p > MAX_P or not _is_meant(_median(values[:index]), _median(values[index:])):
        return []
    return [(index + offset, p), *_cuts(values[:index], offset), *_cuts(values[index:], offset + index)]


def pettitt(values: Sequence[float]) -> tuple[int, float]:
    """The index at which a change is most likely, and the probability of so clear a one by chance; (0, 1) if none."""
    count = len(values)
    if count < 2:
        return 0, 1.0
    sums = accumulate(_ranks(values))
    statistics = [abs(2 * total - t * (count + 1)) for t, total in enumerate(sums, 1)]
    greatest = max(statistics[:-1])
    p = 2 * math.exp(-6 * greatest**2 / (count**3 + count**2))
    return (statistics.index(greatest) + 1, min(1.0, p)) if greatest else (0, 1.0)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values have the mean of theirs."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values), 1):
        places.setdefault(value, []).append(place)
    return [sum(places[value]) / len(places[value]) for value in values]


def _median(values: Sequence[float]) -> float:
    found = spread(values)
    return found.median if found else math.nan


def _is_meant(before: float, after: float) -> bool:
    """Whether the medians differ by enough to be reported."""
    if math.isinf(before) or math.isinf(after):
        return before != after
    return abs(after - before) >= max(MIN_SECONDS, MIN_SHIFT * before)


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
