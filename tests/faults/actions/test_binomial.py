"""Probabilities of shares of pings, against sums of exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from chaos.faults.actions._netem_proof import at_least, at_most, too_few, too_many


def exact(hit: int, sent: int, share: Fraction) -> float:
    return float(sum(comb(sent, k) * share**k * (1 - share) ** (sent - k) for k in range(hit + 1)))


@pytest.mark.parametrize("share", ["0", "1/100", "3/10", "9/10", "1"])
@pytest.mark.parametrize(("hit", "sent"), [(0, 10), (3, 10), (9, 10), (10, 10), (40, 200), (180, 200)])
def test_tails(hit: int, sent: int, share: str) -> None:
    part = Fraction(share)
    assert at_most(hit, sent, float(part)) == pytest.approx(exact(hit, sent, part), rel=1e-6, abs=1e-9)
    above = 1 - exact(hit - 1, sent, part) if hit else 1.0
    assert at_least(hit, sent, float(part)) == pytest.approx(above, rel=1e-6, abs=1e-9)


def test_many_pings_do_not_overflow() -> None:
    assert at_most(3000, 10_000, 0.3) == pytest.approx(0.5, abs=0.01)
    assert at_most(2000, 10_000, 0.3) < 1e-99
    assert at_least(2000, 10_000, 0.3) == pytest.approx(1)


def test_what_is_usual_counts() -> None:
    assert too_many((50, 100), (0, 100), 0.3) < 0.001
    assert too_many((50, 100), (30, 100), 0.3) > 0.1
    assert too_few((30, 100), (30, 100), 0.3) < 0.001
    assert too_few((30, 100), (0, 100), 0.3) > 0.1
    assert too_many((9, 10), (0, 0), 0.3) == 1  # without pings before, all of it may be usual
