"""Change points: Pettitt's test on known data, what is no change, and the rate of changes by chance."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.reports.history.change_points import MAX_P, change_points, pettitt

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
