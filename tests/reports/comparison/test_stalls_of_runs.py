"""Times in which no Lease was renewed, and what they may have delayed."""

from __future__ import annotations

import pytest

from chaos.reports.comparison.comparison import Comparison, compare
from chaos.reports.comparison.phrases import why_text
from chaos.reports.comparison.side import Expected, Side
from chaos.reports.comparison.stalls import Stall, stalled_before
from chaos.verdicts.outcome.measure import Kind, Measure, Outcome
from chaos.verdicts.outcome.prediction import Band

READY = Measure(Kind.NODE, "victim", "Ready again")
STALLS = (Stall(-5.0, 20.0, 3, 3), Stall(100.0, 30.0, 2, 3))


@pytest.mark.parametrize(("seconds", "stalled"), [(0.0, 0.0), (4.0, 4.0), (50.0, 20.0), (110.0, 30.0), (200.0, 50.0)])
def test_what_stalls_may_have_delayed(seconds: float, stalled: float) -> None:
    assert stalled_before(STALLS, seconds) == stalled


def _compared(outcome: Outcome, stalls: tuple[Stall, ...] = STALLS) -> Comparison:
    band = Band(READY, 20, 20, 90.0, 90.0, 90.0, 90.0, 90.0)
    side = Side("run", simulated=False, experiment="x", experiment_hash="", targets={}, actions=(), fault=0.0,
                outcome=outcome, stalls=stalls)  # fmt: skip
    expected = Expected("seeds", simulated=True, experiment="x", experiment_hash="", targets=None, actions=None,
                        outcomes=20, horizon=300.0, measures={READY: band})  # fmt: skip
    return compare(side, expected)


@pytest.mark.parametrize(
    ("outcome", "stalled"),
    [
        (Outcome(300.0, {READY: 112.0}), 32.0),
        (Outcome(300.0, {READY: 141.0}), 50.0),
        (Outcome(300.0, {READY: 143.0}), 0.0),  # later than the stalls are long
        (Outcome(300.0, {READY: 91.0}), 0.0),  # as predicted
        (Outcome(300.0, {READY: 80.0}), 0.0),  # early
        (Outcome(140.0, {}), 50.0),  # may have come after the end
        (Outcome(300.0, {}), 0.0),
    ],
)
def test_a_stall_is_named_only_where_it_is_long_enough(outcome: Outcome, stalled: float) -> None:
    comparison = _compared(outcome)
    (row,) = comparison.rows
    assert comparison.stalled(row) == stalled
    assert (f"stood still for {stalled:.0f} s before it; " in why_text(comparison, row)) == bool(stalled)
    assert comparison.exit_code == (1 if row.standing.is_outside else 0)


def test_a_run_without_stalls() -> None:
    comparison = _compared(Outcome(300.0, {READY: 112.0}), ())
    assert comparison.notes == ()
    assert why_text(comparison, comparison.rows[0]).startswith("the kubelet's first status")
