"""Bounds of the moments at which versions happened, from the order of their resourceVersions."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

_RESOLUTION = 0.01  # seconds by which a bound may be wider, so that an hour of many changes takes little memory


class OrderBounds:
    """What is known of the moments of all changes in one store, whose numbers grow with each.

    ``is_consistent``: no two readings contradict each other, as they do if the numbers are of several stores.
    """

    def __init__(self) -> None:
        self.is_consistent = True
        self._floors: tuple[list[int], list[float]] = ([], [])  # both ascending: of what is newer than the number
        self._ceilings: tuple[list[int], list[float]] = ([], [])  # both ascending: of what is not newer

    def __bool__(self) -> bool:
        return self.is_consistent and bool(self._floors[0])

    def add_read(self, order: int, begin: float, answered: float) -> None:
        """A read that was sent at ``begin`` had everything up to ``order``, and nothing after it."""
        orders, times = self._floors
        at = bisect_right(orders, order)
        if not at or times[at - 1] < begin:
            start, end = bisect_left(orders, order), bisect_right(times, begin, lo=at)
            orders[start:end], times[start:end] = [order], [begin]
        above = bisect_right(self._ceilings[0], order)
        if above < len(self._ceilings[0]) and self._ceilings[1][above] < begin:
            self.is_consistent = False  # it had less than was known before
        self.add_ceiling(order, answered)

    def add_ceiling(self, order: int, t: float) -> None:
        """What is not newer than ``order`` happened by ``t``."""
        orders, times = self._ceilings
        if not orders or (orders[-1] < order and times[-1] < t):  # as usual: the newest
            if len(times) > 1 and t - times[-2] < _RESOLUTION:
                orders[-1], times[-1] = order, t
            else:
                orders.append(order)
                times.append(t)
        else:
            at = bisect_left(orders, order)
            if at == len(orders) or times[at] > t:
                start, end = bisect_left(times, t, hi=at), bisect_right(orders, order)
                orders[start:end], times[start:end] = [order], [t]
        if self._floor(order) > t:
            self.is_consistent = False

    def interval(self, order: int) -> tuple[float, float]:
        """The moments between which the change ``order`` happened; infinite where nothing is known."""
        orders, times = self._ceilings
        if orders and orders[-1] == order:  # as usual: the newest
            return self._floor(order), times[-1]
        by = bisect_left(orders, order)
        return self._floor(order), times[by] if by < len(times) else math.inf

    def _floor(self, order: int) -> float:
        orders, times = self._floors
        if orders and orders[-1] < order:  # as usual: newer than all that was read
            return times[-1]
        at = bisect_left(orders, order)
        return times[at - 1] if at else -math.inf
