"""Signals in blind windows: what is not certain there, before and after."""

from __future__ import annotations

import math

import pytest

from chaos.core.recording import BlindWindow
from chaos.core.signal import Sample, Signal

FIRST = Sample(-math.inf, True, None, "")


def version(t: float, value: bool, earliest: float = math.inf) -> Sample:
    return Sample(t, value, int(t), "", earliest)


@pytest.mark.parametrize(
    ("samples", "end", "expected"),
    [
        ([], 12, [(10, None), (12, True)]),
        ([version(5, False)], 12, [(5, False), (10, None), (12, False)]),
        ([version(11, False)], 12, [(10, None), (12, False)]),
        ([version(11, False)], None, [(10, None)]),
        ([version(11, False, 8)], 12, [(8, None), (12, False)]),
        ([version(11, False, 8)], None, [(8, None)]),
        ([version(15, False)], 12, [(10, None), (12, True), (15, False)]),
        ([version(15, False, 13)], 12, [(10, None), (12, True), (15, False)]),
        ([version(15, False, 11)], 12, [(10, None), (15, False)]),
        ([version(15, False, 8)], 12, [(8, None), (15, False)]),
        ([version(9, False, 5), version(15, True, 6)], 12, [(5, None), (15, True)]),
    ],
)
def test_masked(samples: list[Sample], end: float | None, expected: list[tuple[float, bool | None]]) -> None:
    masked = Signal((FIRST, *samples)).mask([BlindWindow(10, end, "cut", "nodes")])
    assert [(sample.t, sample.value) for sample in masked.samples[1:]] == expected
    if end is not None:
        assert all(sample.lo >= end for sample in masked.samples if sample.t > end)
