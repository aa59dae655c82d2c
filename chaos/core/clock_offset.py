"""Offset of another clock from the clock of the run, as estimated from a distance."""

from __future__ import annotations

from msgspec import Struct

CLOCK_OFFSETS = "clockOffsets"  # key of the meta entry: ClockOffset by source


class ClockOffset(Struct, frozen=True):
    """``seconds`` ahead of the run's clock, with an uncertainty of ``within`` seconds."""

    seconds: float
    within: float


class ClockOffsetBounds:
    """Intersection of the readings of one clock, each a minimum and a maximum of its offset.

    A reading that is disjoint from the intersection means that one of the clocks was set: it starts a new one.
    """

    def __init__(self) -> None:
        self._low, self._high = float("-inf"), float("inf")

    def add(self, low: float, high: float) -> None:
        if low > self._high or high < self._low:
            self._low, self._high = low, high
        self._low, self._high = max(low, self._low), min(high, self._high)

    def offset(self) -> ClockOffset | None:
        """The estimate, None before the first reading."""
        if self._low == float("-inf"):
            return None
        return ClockOffset(round((self._low + self._high) / 2, 3), round((self._high - self._low) / 2, 3))
