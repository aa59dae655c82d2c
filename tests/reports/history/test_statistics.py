"""Spread, change points and sparklines of durations."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.reports.history.trend import MAX_P, Spread, change_points, pettitt, sparkline, spread

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


INF = math.inf
# Annual flow of the Nile at Aswan from 1871 to 1970, in 10^8 m^3, which is known to have changed after 1898, the 28th
# value: Cobb, "The problem of the Nile", Biometrika 65 (1978), 243-251.
NILE = [
    *(1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140),
    *(1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969),
    *(831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759),
    *(781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890),
    *(744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740),
]


def test_the_nile() -> None:
    index, p = pettitt(NILE)
    assert index == 28
    assert p < 1e-6
    assert [change.index for change in change_points(NILE)] == [28]


NONE: list[list[float]] = [
    [],
    [1.0],
    [5.0] * 50,
    [1.0] * 5 + [9.0] * 5,  # too few
    [5.0, 5.1] * 20,
    [5.0] * 20 + [500.0] + [5.0] * 20,  # an outlier
    [5.0] * 20 + [5.3] * 20,  # less than a tenth
    [0.01] * 20 + [0.05] * 20,  # less than 0.1 s
    [0.0] * 20 + [0.09] * 20,
    [INF] * 30,
]


@pytest.mark.parametrize("values", NONE, ids=lambda values: f"{len(values)} values")
def test_no_change(values: list[float]) -> None:
    assert change_points(values) == ()


CHANGES: list[tuple[list[float], list[tuple[int, float, float]]]] = [
    ([5.0] * 6 + [9.0] * 6, [(6, 5, 9)]),  # the fewest
    ([5.0] * 20 + [9.0] * 8, [(20, 5, 9)]),
    ([9.0] * 20 + [5.0] * 20, [(20, 9, 5)]),
    ([5.0] * 12 + [INF] * 12, [(12, 5, INF)]),
    ([INF] * 12 + [5.0] * 12, [(12, INF, 5)]),
    ([0.0] * 12 + [2.0] * 12, [(12, 0, 2)]),
    ([1.0] * 20 + [5.0] * 20 + [9.0] * 20, [(20, 1, 5), (40, 5, 9)]),
    ([5.0] * 20 + [9.0] * 10 + [100.0] + [9.0] * 10, [(20, 5, 9)]),
]


@pytest.mark.parametrize(("values", "expected"), CHANGES, ids=lambda value: f"{len(value)}")
def test_changes(values: list[float], expected: list[tuple[int, float, float]]) -> None:
    found = change_points(values)
    assert [(change.index, change.before, change.after) for change in found] == expected
    assert all(change.p <= MAX_P for change in found)


def test_noise_changes_seldom() -> None:
    """In 3 of 100 series of noise at most, whatever their length: the approximation is conservative."""
    rng = random.Random(1)  # noqa: S311 - reproducible on purpose
    for count in (12, 20, 40):
        found = sum(bool(change_points([rng.uniform(1, 9) for _ in range(count)])) for _ in range(400))
        assert found <= 12, count


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e4) | st.just(INF), max_size=60))
def test_they_are_in_order_and_between_values(values: list[float]) -> None:
    found = [change.index for change in change_points(values)]
    assert found == sorted(set(found))
    assert all(0 < index < len(values) for index in found)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e4), min_size=2, max_size=40))
def test_the_statistic_is_that_of_the_definition(values: list[float]) -> None:
    """U(t) is the sum of sign(x_j - x_i) over i <= t < j."""
    count = len(values)
    sums = [abs(sum((b > a) - (b < a) for a in values[:t] for b in values[t:])) for t in range(1, count)]
    greatest = max(sums)
    expected = [sums.index(greatest) + 1, min(1.0, 2 * math.exp(-6 * greatest**2 / (count**3 + count**2)))]
    index, p = pettitt(values)
    assert [index, p] == (pytest.approx(expected) if greatest else [0, 1.0])


LINES: list[tuple[list[float | None], str, str]] = [
    ([], "utf-8", ""),
    ([0, 1, 2, 3, 4, 5, 6, 7], "utf-8", "▁▂▃▄▅▆▇█"),
    ([7, 0], "utf-8", "█▁"),
    ([5, 5], "utf-8", "▄▄"),
    ([None, 1, math.inf, 2], "utf-8", "?▁✗█"),
    ([None, math.inf], "utf-8", "?✗"),
    ([0, None, 7, math.inf], "ascii", "1?8x"),
]


def test_bounds_are_of_the_lowest_and_the_highest() -> None:
    assert sparkline([3, 3, 2], bounds=(0, 3)) == "██▆"
    assert sparkline([0, 9, -1], bounds=(0, 3)) == "▁█▁"


@pytest.mark.parametrize(("values", "encoding", "expected"), LINES)
def test_a_line(values: list[float | None], encoding: str, expected: str) -> None:
    assert sparkline(values, encoding) == expected
