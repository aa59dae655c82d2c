"""Bounds of moments by resourceVersions, compared with all that the reads say."""

from __future__ import annotations

import math
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from chaos.core.time_bounds import OrderBounds

READS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 30), st.integers(0, 15)), max_size=12)
CEILINGS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 40)), max_size=6)


@given(READS, CEILINGS, st.integers(1, 21))
def test_bounds_are_the_narrowest_that_the_reads_leave(
    reads: list[tuple[int, int, int]], ceilings: list[tuple[int, int]], order: int
) -> None:
    bounds = OrderBounds()
    for version, begin, seconds in reads:
        bounds.add_read(version, begin, begin + seconds)
    for version, t in ceilings:
        bounds.add_ceiling(version, t)
    earliest = max((begin for version, begin, _ in reads if version < order), default=-math.inf)
    answers = [*((version, begin + seconds) for version, begin, seconds in reads), *ceilings]
    latest = min((t for version, t in answers if version >= order), default=math.inf)
    assert bounds.interval(order) == (earliest, latest)
    known: list[tuple[int, float, int]] = [(version, begin, begin + seconds) for version, begin, seconds in reads]
    known += [(version, -math.inf, t) for version, t in ceilings]
    crossed = any(lower < version and by < begin for lower, begin, _ in known for version, _, by in known)
    assert bounds.is_consistent != crossed
    assert bool(bounds) == (bool(reads) and not crossed)


@given(st.lists(st.floats(0.0001, 0.02), min_size=1, max_size=200))
def test_changes_in_quick_succession_share_bounds(steps: list[float]) -> None:
    bounds, times = OrderBounds(), list(accumulate(steps))
    for order, t in enumerate(times, start=1):
        bounds.add_ceiling(order, t)
        assert bounds.interval(order) == (-math.inf, t)
    for order, t in enumerate(times, start=1):
        assert t <= bounds.interval(order)[1] < t + 0.01
    assert len(bounds._ceilings[0]) <= 2 * times[-1] / 0.01 + 2
