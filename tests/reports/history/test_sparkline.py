"""Sparklines."""

from __future__ import annotations

import math

import pytest

from chaos.reports.history.sparkline import sparkline

CASES: list[tuple[list[float | None], str, str]] = [
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


@pytest.mark.parametrize(("values", "encoding", "expected"), CASES)
def test_a_line(values: list[float | None], encoding: str, expected: str) -> None:
    assert sparkline(values, encoding) == expected
