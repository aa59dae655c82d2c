"""How far another clock is ahead of the run's, as far as can be told from afar."""

from __future__ import annotations

from msgspec import Struct

CLOCK_OFFSETS = "clockOffsets"  # key of meta: Offset by source


class ClockOffset(Struct, frozen=True):
    """``seconds`` ahead of the run's clock, give or take ``within``."""

    seconds: float
    within: float


class ClockOffsetBounds:
    """Readings of one clock, each with the least and the most that it can be ahead; together they tell more.

    A reading that does not agree with those before means that one of the clocks was set: only what follows counts.
    """

    def __init__(self) -> None:
        self._low, self._high = float("-inf"), float("inf")

    def add(self, low: float, high: float) -> None:
        if low > self._high or high < self._low:
            self._low, self._high = low, high
        self._low, self._high = max(low, self._low), min(high, self._high)

    def offset(self) -> ClockOffset | None:
        """None before the first reading."""
        if self._low == float("-inf"):
            return None
        return ClockOffset(round((self._low + self._high) / 2, 3), round((self._high - self._low) / 2, 3))
