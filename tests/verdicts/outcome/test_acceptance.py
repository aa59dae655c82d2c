"""When a measure lies in its band, on small tables; how wide a band of few seeds is accepted."""

from __future__ import annotations

import random

import pytest

from chaos.verdicts.outcome.acceptance import Standing, Terms, compare_outcome, mechanism_of, widening
from chaos.verdicts.outcome.measure import Kind, Measure, Outcome
from chaos.verdicts.outcome.prediction import Band, bands

UNKNOWN = Measure(Kind.NODE, "victim", "Ready=Unknown")
AGAIN = Measure(Kind.NODE, "victim", "Ready again")
FEWER_FOR = Measure(Kind.WORKLOAD, "shop/web", "fewer pods ready for")
ENOUGH = Measure(Kind.WORKLOAD, "shop/web", "enough pods ready again")
DAEMON = "2 of kube-system/agent on victim"
REJECTED = Measure(Kind.REPLACEMENT, DAEMON, "Failed (NodeShutdown)")
TERMS = Terms(horizon=300.0, resolution=2.0)


def band(measure: Measure, low: float, high: float, happened: int = 20, outcomes: int = 20) -> dict[Measure, Band]:
    return {measure: Band(measure, outcomes, happened, low, low, (low + high) / 2, high, high)}


def standing(
    seconds: dict[Measure, float], predicted: dict[Measure, Band], terms: Terms = TERMS, observed: float = 300.0
) -> dict[Measure, Standing]:
    return {row.measure: row.standing for row in compare_outcome(Outcome(observed, seconds), predicted, terms)}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (50.0, Standing.INSIDE),
        (35.8, Standing.INSIDE),
        (64.2, Standing.INSIDE),
        (35.5, Standing.EARLY),
        (64.5, Standing.LATE),
    ],
)
def test_a_band_is_wider_by_27_percent_and_the_resolution(seconds: float, expected: Standing) -> None:
    """Twenty seeds: c is 0.27, so 42 to 58 s, which are 16 s wide, are accepted from 35.7 to 64.3 s."""
    found = standing({UNKNOWN: seconds}, band(UNKNOWN, 42.0, 58.0))
    assert found == {UNKNOWN: expected}


def test_two_groups_of_times_do_not_make_the_rest_likely() -> None:
    """A volume that is detached at once or after six minutes: 360 s wide, but no more than a sync is accepted."""
    moved = Measure(Kind.VOLUME, "shop/data", "detached from victim")
    assert widening(band(moved, 3.0, 363.0)[moved]) == mechanism_of(moved).period
    assert standing({moved: 380.0}, band(moved, 3.0, 363.0), Terms(1000.0), 1000.0) == {moved: Standing.LATE}


def test_one_outcome_is_as_wide_as_its_mechanism() -> None:
    alone = band(UNKNOWN, 50.0, 50.0, 1, 1)
    assert standing({UNKNOWN: 65.0}, alone) == {UNKNOWN: Standing.INSIDE}
    assert standing({UNKNOWN: 69.0}, alone) == {UNKNOWN: Standing.LATE}


def test_what_no_seed_has_is_a_surprise_only_in_the_time_that_was_predicted() -> None:
    assert standing({UNKNOWN: 50.0}, {}) == {UNKNOWN: Standing.UNEXPECTED}
    assert standing({UNKNOWN: 299.0}, {}) == {UNKNOWN: Standing.UNKNOWN}


def test_what_every_seed_has_must_happen_if_it_was_observed_for_long_enough() -> None:
    every = band(UNKNOWN, 42.0, 58.0)
    assert standing({}, every) == {UNKNOWN: Standing.MISSING}
    assert standing({}, every, observed=60.0) == {UNKNOWN: Standing.UNKNOWN}
    assert standing({}, band(UNKNOWN, 42.0, 58.0, 19)) == {UNKNOWN: Standing.CHANCE}
    assert standing({}, band(UNKNOWN, 42.0, 58.0, 9)) == {}


def test_a_duration_is_missing_only_if_its_end_is() -> None:
    both = band(FEWER_FOR, 120.0, 125.0) | band(ENOUGH, 165.0, 170.0)
    assert standing({}, both)[FEWER_FOR] is Standing.MISSING
    assert standing({}, both, observed=150.0)[FEWER_FOR] is Standing.UNKNOWN


def test_a_kubelet_that_ran_on_returns_up_to_a_sync_later() -> None:
    predicted = band(AGAIN, 100.0, 101.0)
    assert standing({AGAIN: 112.0}, predicted) == {AGAIN: Standing.LATE}
    late = Terms(300.0, 2.0, late_return=True)
    assert standing({AGAIN: 112.0}, predicted, late) == {AGAIN: Standing.INSIDE}
    assert standing({AGAIN: 95.0}, predicted, late) == {AGAIN: Standing.EARLY}
    assert standing({UNKNOWN: 70.0}, band(UNKNOWN, 50.0, 51.0) | predicted, late)[UNKNOWN] is Standing.LATE


def test_one_rejected_pod_more_or_less_is_chance() -> None:
    created = Measure(Kind.REPLACEMENT, DAEMON, "created")
    first = Measure(Kind.REPLACEMENT, "1 of kube-system/agent on victim", "created")
    found = standing({}, band(REJECTED, 2.0, 3.0) | band(created, 2.0, 3.0) | band(first, 2.0, 3.0))
    assert found == {REJECTED: Standing.CHANCE, created: Standing.CHANCE, first: Standing.MISSING}


@pytest.mark.parametrize("number", [5, 20, 50])
def test_a_uniform_time_is_outside_in_about_one_of_a_thousand(number: int) -> None:
    """What the widening promises, on 20,000 drawn samples; without it, it would be 2 / (N + 1)."""
    rng, outside, bare = random.Random(7), 0, 0  # noqa: S311 - repeatable
    for _ in range(20_000):
        times = [rng.uniform(50.0, 53.0) for _ in range(number)]
        found = bands(Outcome(300.0, {UNKNOWN: time}) for time in times)[UNKNOWN]
        margin, new = widening(found), rng.uniform(50.0, 53.0)
        outside += not found.low - margin <= new <= found.high + margin
        bare += not found.low <= new <= found.high
    assert bare / 20_000 == pytest.approx(2 / (number + 1), rel=0.2)
    assert outside / 20_000 <= 0.002


def test_every_measure_has_a_mechanism_of_the_facts() -> None:
    text = mechanism_of(UNKNOWN)
    assert (text.facts, text.link) == ("5.2", "kubernetes-facts.md (5.2)")


def test_what_only_one_side_could_see_is_no_difference() -> None:
    """A side without a power control cannot know how long a machine that was off went unnoticed."""
    unnoticed = Measure(Kind.NODE, "n1", "off unnoticed for")
    assert standing({unnoticed: 45.0}, {}) == {unnoticed: Standing.UNKNOWN}
    assert standing({}, band(unnoticed, 44.0, 46.0)) == {unnoticed: Standing.UNKNOWN}
    assert standing({unnoticed: 45.0}, band(unnoticed, 44.0, 46.0)) == {unnoticed: Standing.INSIDE}
    assert standing({unnoticed: 90.0}, band(unnoticed, 44.0, 46.0)) == {unnoticed: Standing.LATE}
