"""The oracle's operators on the histories of docs/time-words.md, and with bounds of moments."""

from __future__ import annotations

import math

import pytest

from tests.oracle.trace import BOTH, Change, Trace, always, first_true, masked, negated, ordered, within

HELD, VIOLATED = frozenset({"held"}), frozenset({"violated"})


def history(*changes: tuple[float, bool | None] | tuple[float, bool | None, float]) -> Trace:
    """(moment, value), or (at least, value, at most)."""
    trace = [Change(c[0], c[2] if len(c) > 2 else c[0], c[1]) for c in changes]
    return [Change(-math.inf, -math.inf, trace[0].value), *trace[1:]]


@pytest.mark.parametrize(
    ("trace", "bound", "lasting", "right"),
    [
        (history((0, False), (41, True)), 60, None, HELD),
        (history((0, True), (5, False)), 60, None, HELD),
        (history((0, False), (70, True)), 60, None, VIOLATED),
        (history((0, False), (60, True)), 60, None, HELD),
        (history((0, False), (50, None), (65, True)), 60, None, BOTH),
        (history((0, False), (41, True), (80, False)), 60, 30, HELD),
        (history((0, False), (41, True), (60, False)), 60, 30, VIOLATED),
        (history((0, False), (41, True), (50, False), (58, True)), 60, 30, HELD),
        (history((0, False), (41, True), (60, None), (65, True), (80, False)), 60, 30, BOTH),
        (history((0, False), (55, True, 59)), 60, None, HELD),
        (history((0, False), (55, True, 61)), 60, None, BOTH),
        (history((0, False), (20, True), (20, False)), 60, None, HELD),  # for a moment
        (history((0, False), (10, True, 30), (10, False, 30)), 60, None, HELD),  # for a moment, whenever that was
    ],
)
def test_within(trace: Trace, bound: float, lasting: float | None, right: frozenset[str]) -> None:
    assert within(trace, 0, bound, lasting) == right


@pytest.mark.parametrize(
    ("trace", "right"),
    [
        (history((0, True)), HELD),
        (history((0, True), (33, False), (34, True)), VIOLATED),
        (history((-5, False), (1, True)), VIOLATED),
        (history((0, True), (20, None), (24, True)), BOTH),
        (history((0, True), (60, False)), HELD),
        (history((0, True), (59, False, 61)), BOTH),
        (history((0, True), (20, False, 40), (20, True, 40)), VIOLATED),
    ],
)
def test_always_and_never(trace: Trace, right: frozenset[str]) -> None:
    assert always(trace, 0, 60) == right
    assert always(negated(negated(trace)), 0, 60) == right


def test_a_change_in_a_blind_window_shows_at_its_border() -> None:
    trace = masked(history((0, False), (5, True, 25)), [(20, 30)])
    assert within(trace, 0, 40, None) == HELD
    assert within(trace, 0, 19, None) == BOTH
    assert within(masked(history((0, False), (15, True, 25), (31, False)), [(20, 30)]), 0, 24, None) == BOTH
    assert always(masked(history((0, False), (25, True, 40)), [(20, 30)]), 22, 60) == BOTH
    assert always(masked(history((0, False), (22, True), (25, False, 40), (26, True, 41)), [(20, 30)]), 24, 60) == BOTH
    assert within(masked(history((0, False), (22, True)), [(20, 30)]), 0, 25, None) == BOTH


def test_a_version_is_where_the_step_that_it_proves_is() -> None:
    trace = [Change(-math.inf, -math.inf, False), Change(2, 9, True, 1.0), Change(3, 9, False, 2.0)]
    assert ordered(trace, 5, 1.0)[1:] == [Change(5, 5, True, 1.0), Change(5, 9, False, 2.0)]


def test_the_first_moment_of_truth() -> None:
    assert first_true(history((0, False), (5, True, 7)), 0, 60) == (5, 7)
    assert first_true(history((0, True)), 10, 60) == (10, 10)
    assert first_true(history((0, False)), 10, 60) == (math.inf, math.inf)
