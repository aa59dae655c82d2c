"""Delays that go on, and times in which the API server or its clients stalled."""

from __future__ import annotations

import pytest

from chaos.reports.comparison.comparison import Comparison, compare, followed
from chaos.reports.comparison.phrases import why_text
from chaos.reports.comparison.side import Expected, Side, Stall, stalled_before
from chaos.verdicts.outcome.acceptance import Terms, compare_outcome
from chaos.verdicts.outcome.measure import Kind, Measure, Outcome
from chaos.verdicts.outcome.prediction import Band

READY = Measure(Kind.REPLACEMENT, "1 of shop/web", "Ready")
DELETING = Measure(Kind.POD, "1 of shop/web on a", "deleting")
REMOVED = Measure(Kind.POD, "1 of shop/web on a", "removed")
ENOUGH = Measure(Kind.WORKLOAD, "shop/web", "enough pods ready again")
FEWER_FOR = Measure(Kind.WORKLOAD, "shop/web", "fewer pods ready for")
BANDS = {
    measure: Band(measure, 20, 20, at, at, at, at, at)
    for measure, at in ((READY, 10.0), (DELETING, 10.0), (REMOVED, 20.0), (ENOUGH, 30.0), (FEWER_FOR, 25.0))
}


def chains(**seconds: float) -> dict[str, str]:
    """What follows what, by the words of :data:`READY` to :data:`FEWER_FOR`; the rest is at its predicted time."""
    given = {measure: seconds.get(_word(measure), band.p50) for measure, band in BANDS.items()}
    rows = compare_outcome(Outcome(300.0, given), BANDS, Terms(300.0))
    return {_word(later): _word(first) for later, first in followed(rows).items()}


def _word(measure: Measure) -> str:
    return measure.what.replace(" ", "_")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({}, {}),
        ({"Ready": 14.0}, {}),
        ({"Ready": 14.0, "deleting": 14.0}, {"Ready": "deleting"}),  # of two at the same time, the pod comes first
        ({"Ready": 14.0, "removed": 24.0}, {"removed": "Ready"}),
        ({"Ready": 14.0, "removed": 25.9}, {"removed": "Ready"}),  # two seconds of resolution
        ({"Ready": 14.0, "removed": 26.1}, {}),  # later than that by a delay added to it
        ({"Ready": 14.0, "removed": 17.0}, {}),  # the one is late, the other early
        (
            {"Ready": 14.0, "removed": 25.5, "enough_pods_ready_again": 37.0},  # by 4, 5.5 and 7 s
            {"removed": "Ready", "enough_pods_ready_again": "Ready"},
        ),
        ({"deleting": 7.0, "removed": 17.0}, {"removed": "deleting"}),
    ],
)
def test_what_follows(seconds: dict[str, float], expected: dict[str, str]) -> None:
    assert chains(**seconds) == expected


def test_a_duration_follows_what_was_late_before_its_end() -> None:
    found = chains(Ready=14.0, enough_pods_ready_again=34.0, fewer_pods_ready_for=29.0)
    assert found == {"enough_pods_ready_again": "Ready", "fewer_pods_ready_for": "Ready"}


def test_a_difference_of_states_follows_nothing() -> None:
    rows = compare_outcome(Outcome(300.0, {READY: 14.0}), BANDS, Terms(300.0))
    assert [row.standing.is_state for row in rows] == [True, False, True, True, True]
    assert followed(rows) == {}


IS_READY = Measure(Kind.NODE, "victim", "Ready again")
STALLS = (Stall(-5.0, 20.0, 3, 3), Stall(100.0, 30.0, 2, 3))


@pytest.mark.parametrize(("seconds", "stalled"), [(0.0, 0.0), (4.0, 4.0), (50.0, 20.0), (110.0, 30.0), (200.0, 50.0)])
def test_what_stalls_may_have_delayed(seconds: float, stalled: float) -> None:
    assert stalled_before(STALLS, seconds) == stalled


def _compared(outcome: Outcome, stalls: tuple[Stall, ...] = STALLS) -> Comparison:
    band = Band(IS_READY, 20, 20, 90.0, 90.0, 90.0, 90.0, 90.0)
    side = Side("run", simulated=False, experiment="x", experiment_hash="", targets={}, actions=(), fault=0.0,
                outcome=outcome, stalls=stalls)  # fmt: skip
    expected = Expected("seeds", simulated=True, experiment="x", experiment_hash="", targets=None, actions=None,
                        outcomes=20, horizon=300.0, measures={IS_READY: band})  # fmt: skip
    return compare(side, expected)


@pytest.mark.parametrize(
    ("outcome", "stalled"),
    [
        (Outcome(300.0, {IS_READY: 112.0}), 32.0),
        (Outcome(300.0, {IS_READY: 141.0}), 50.0),
        (Outcome(300.0, {IS_READY: 143.0}), 0.0),  # later than the stalls are long
        (Outcome(300.0, {IS_READY: 91.0}), 0.0),  # as predicted
        (Outcome(300.0, {IS_READY: 80.0}), 0.0),  # early
        (Outcome(140.0, {}), 50.0),  # may have come after the end
        (Outcome(300.0, {}), 0.0),
    ],
)
def test_a_stall_is_named_only_where_it_is_long_enough(outcome: Outcome, stalled: float) -> None:
    comparison = _compared(outcome)
    (row,) = comparison.rows
    assert comparison.stalled(row) == stalled
    assert (f"stalled for {stalled:.0f} s before it; " in why_text(comparison, row)) == bool(stalled)
    assert comparison.exit_code == (1 if row.standing.is_outside else 0)


def test_a_run_without_stalls() -> None:
    comparison = _compared(Outcome(300.0, {IS_READY: 112.0}), ())
    assert comparison.notes == ()
    assert why_text(comparison, comparison.rows[0]).startswith("the kubelet's first status")
