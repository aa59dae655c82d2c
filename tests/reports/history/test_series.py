"""A series: its seeds, when it stops, its exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.reports.history.series import Series, SeriesRun, derived_seed, endings, gravest, series_text, stop_reason
from tests.kit.stored_runs import DAY, NOW, result_of, stored, within


def test_seeds() -> None:
    """They are the same in every version: a series is repeated by its first seed."""
    assert [derived_seed(5, index) for index in range(3)] == [5, 3101376431, 111713285]


@given(st.integers(-(2**40), 2**40))
def test_seeds_differ(first: int) -> None:
    assert len({derived_seed(first, index) for index in range(50)}) == 50


CODES = [
    ([0, 0], 0),
    ([0, 2], 2),
    ([2, 1, 0], 1),
    ([2, 4], 4),
    ([1, 4], 1),
    ([1, 130], 130),
    ([143, 130], 143),
    ([130, 1, 3], 3),
    ([1, 64], 64),
    ([3, 70], 3),
    ([], 0),
]


@pytest.mark.parametrize(("codes", "expected"), CODES)
def test_the_gravest_exit_code(codes: list[int], expected: int) -> None:
    assert gravest(codes) == expected


STOPS: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"exit_code": 1, "headline": "violated: x"}, ""),
    ({"exit_code": 2, "headline": "inconclusive: x"}, ""),
    ({"exit_code": 3}, "an undo is pending"),
    ({"exit_code": 2, "headline": "aborted: a node was lost"}, "aborted: a node was lost"),
    ({"exit_code": 4, "headline": "refused: no steady state"}, "refused: no steady state"),
    (
        {"exit_code": 130, "headline": "interrupted by SIGINT before every verdict was decided"},
        "interrupted by SIGINT before every verdict was decided",
    ),
]


@pytest.mark.parametrize(("changes", "reason"), STOPS)
def test_what_stops_a_series(changes: dict[str, Any], reason: str) -> None:
    assert stop_reason(result_of(within(1), **changes)) == reason


def test_the_text(tmp_path: Path) -> None:
    results = [result_of(within(s), started=NOW + n * DAY) for n, s in enumerate((3, 50, 5))]
    runs = stored(tmp_path, *results)[::-1]
    series_runs = tuple(SeriesRun(n, run, result) for n, (run, result) in enumerate(zip(runs, results, strict=True)))
    assert endings(series_runs) == {"held": 2, "violated": 1}
    lines = series_text(Series("e", 5, 7, series_runs, 1, "an undo is pending"), "utf-8").splitlines()
    assert lines[0] == "series: 3 of 5 runs of e: 2 held, 1 violated"
    assert lines[3].startswith("pods end     2 of 3  true after 5s")
    assert lines[5:] == [
        "violated: e/20261122T033533Z, seed 1: violated: a headline",
        "stopped: an undo is pending",
        "seed of the series: 7",
    ]
