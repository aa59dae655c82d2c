"""How likely shares of pings are, of which each is hit by chance."""

from __future__ import annotations

from math import exp, lgamma, log

_NEGLIGIBLE = 1e-12  # part of a sum
_STEPS = 50  # of the usual share, between 0 and 1


def at_most(hit: int, sent: int, share: float) -> float:
    """Probability that ``hit`` or fewer of ``sent`` are hit, each with the probability ``share``."""
    if share <= 0 or hit >= sent:
        return 1.0
    if share >= 1:
        return 0.0
    if hit > sent * share:
        return 1 - _tail(sent - hit - 1, sent, 1 - share)
    return _tail(hit, sent, share)


def at_least(hit: int, sent: int, share: float) -> float:
    """Probability of ``hit`` or more."""
    return at_most(sent - hit, sent, 1 - share)


def too_many(hit: tuple[int, int], usual: tuple[int, int], share: float) -> float:
    """Probability of so few before and so many now, if ``share`` is hit now besides what is usual.

    ``hit`` and ``usual`` are how many of how many were hit, now and before. What is usual is not known exactly: this is
    the probability at the usual share with which it is highest.
    """
    return max(at_most(*usual, base) * at_least(*hit, _both(base, share)) for base in _bases())


def too_few(hit: tuple[int, int], usual: tuple[int, int], share: float) -> float:
    """As :func:`too_many`, of so many before and so few now."""
    return max(at_least(*usual, base) * at_most(*hit, _both(base, share)) for base in _bases())


def _bases() -> list[float]:
    return [step / _STEPS for step in range(_STEPS + 1)]


def _both(base: float, share: float) -> float:
    return 1 - (1 - base) * (1 - share)


def _tail(hit: int, sent: int, share: float) -> float:
    """:func:`at_most` for a ``hit`` that is not above the mean: the terms fall from it on."""
    if hit < 0:
        return 0.0
    ways = lgamma(sent + 1) - lgamma(hit + 1) - lgamma(sent - hit + 1)
    term, total = exp(ways + hit * log(share) + (sent - hit) * log(1 - share)), 0.0
    for count in range(hit, -1, -1):
        total += term
        term *= count * (1 - share) / ((sent - count + 1) * share)
        if term < total * _NEGLIGIBLE:
            break
    return total
