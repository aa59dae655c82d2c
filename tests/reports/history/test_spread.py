"""Quartiles, also of values that are only known to exceed a bound."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.reports.history.spread import Spread, spread

INF = math.inf
CASES = [
    ([], None),
    ([3.0], Spread(1, 3, 3, 3)),
    ([4.0, 1.0, 3.0, 2.0, 5.0], Spread(5, 2, 3, 4)),
    ([1.0, 2.0], Spread(2, 1.25, 1.5, 1.75)),
    ([1.0, 2.0, 3.0, INF], Spread(4, 1.75, 2.5, INF)),
    ([1.0, INF, INF], Spread(3, INF, INF, INF)),
    ([INF], Spread(1, INF, INF, INF)),
]


@pytest.mark.parametrize(("values", "expected"), CASES)
def test_quartiles(values: list[float], expected: Spread | None) -> None:
    assert spread(values) == expected


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=30))
def test_they_are_those_of_the_standard_library(values: list[float]) -> None:
    found = spread(values)
    assert found
    expected = statistics.quantiles(values, n=4, method="inclusive")
    assert [found.first, found.median, found.third] == pytest.approx(expected, abs=1e-6)
