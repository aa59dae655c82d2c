"""Whether what happened lies in the band that was predicted. Pure.

A band of N seeds is a sample: the next value lies outside of it with probability 2 / (N + 1), whatever its distribution
is. So the accepted interval is wider than the band:

- by ``c R`` on both sides, with R the width of the band and ``c = (2 / ((N + 1) p)) ^ (1 / (N - 1)) - 1``. Times that
  are uniformly distributed, as those that wait for periodic work are, then lie outside with the probability p = 0.1 %.
  But by no more than the period of the mechanism: two groups of times do not make likely what is beyond them.
- by the resolution of the observation: 2 s where a side is real (whole seconds of Kubernetes, the kubelet's sync of
  statuses, receipt), and the offsets of clocks that are known; 1 s between two simulations.
- by one status sync of a kubelet (10.4 s), later only, from the moment on at which a kubelet returns that ran on
  without the API server: when its connection and its next sync recover is not simulated (facts 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from chaos.verdicts.outcome.bands import Band
from chaos.verdicts.outcome.measure import Kind, Measure, Outcome
from chaos.verdicts.outcome.mechanisms import REJECTED, SYNC, mechanism_of
from chaos.verdicts.outcome.nodes import READY_AGAIN
from chaos.verdicts.outcome.pods import CREATED, READY, SCHEDULED
from chaos.verdicts.outcome.workloads import ENOUGH, FEWER_FOR, NONE_FOR, SOME

RESOLUTION, SIMULATED_RESOLUTION = 2.0, 1.0  # seconds
_FALSE_ALARM = 0.001
_ENDS = {FEWER_FOR: ENOUGH, NONE_FOR: SOME}


class Standing(StrEnum):
    """How a measure stands to its band."""

    INSIDE = "inside"
    EARLY = "earlier than predicted"
    LATE = "later than predicted"
    MISSING = "predicted, but it did not happen"
    UNEXPECTED = "happened, but was not predicted"
    UNKNOWN = "not observed for long enough"
    CHANCE = "left to chance"

    @property
    def is_outside(self) -> bool:
        """Whether reality left the prediction."""
        return self in (Standing.EARLY, Standing.LATE, Standing.MISSING, Standing.UNEXPECTED)

    @property
    def is_state(self) -> bool:
        """Whether it is about what happened, not when."""
        return self in (Standing.MISSING, Standing.UNEXPECTED)


@dataclass(frozen=True, slots=True)
class Row:
    """One measure. ``seconds``: what happened, None if it did not. ``low``, ``high``: the accepted interval in seconds.

    ``beyond``: seconds outside of that interval, 0 inside, infinite for a difference of states.
    """

    measure: Measure
    seconds: float | None
    band: Band | None
    low: float
    high: float
    standing: Standing

    @property
    def beyond(self) -> float:
        if self.standing.is_state:
            return float("inf")
        if self.seconds is None or not self.standing.is_outside:
            return 0.0
        return max(self.low - self.seconds, self.seconds - self.high)


@dataclass(frozen=True, slots=True)
class Terms:
    """How to compare. ``horizon``: seconds after the fault that were predicted. ``resolution``: with offsets of clocks.

    ``late_return``: a kubelet ran on without the API server.
    """

    horizon: float
    resolution: float = RESOLUTION
    late_return: bool = False


def compare_outcome(outcome: Outcome, predicted: Mapping[Measure, Band], terms: Terms) -> list[Row]:
    """One row for each measure that happened or that most seeds predict, in the order of time."""
    comparison = _Comparison(outcome, predicted, terms)
    measures = {*outcome.seconds, *(measure for measure, band in predicted.items() if band.share > 1 / 2)}
    rows = [comparison.row(measure) for measure in measures]
    return sorted(rows, key=lambda row: (_time(row), row.measure))


def widening(band: Band) -> float:
    """Seconds by which a band of few seeds is too narrow on each side."""
    period = mechanism_of(band.measure).period
    if band.happened < 2:
        return period
    factor = (2 / ((band.happened + 1) * _FALSE_ALARM)) ** (1 / (band.happened - 1)) - 1
    width = band.high - band.low
    return min(max(factor, 0.0) * width, period) if band.happened > 2 else period


def time_of_end(measure: Measure, seconds: Mapping[Measure, float]) -> float:
    """When a measure was complete, in seconds after the fault: a duration at its end. Infinite for what never was."""
    end = _ENDS.get(measure.what)
    at = Measure(measure.kind, measure.subject, end) if end else measure
    return seconds.get(at, float("inf"))


class _Comparison:
    def __init__(self, outcome: Outcome, predicted: Mapping[Measure, Band], terms: Terms) -> None:
        self._outcome, self._predicted, self._terms = outcome, predicted, terms
        returns = [band.low for measure, band in predicted.items() if _is_return(measure)]
        self._return = min(returns, default=float("inf")) if terms.late_return else float("inf")
        both = {*outcome.seconds, *predicted}
        self._races = {_group(measure) for measure in both if measure.what == REJECTED}

    def row(self, measure: Measure) -> Row:
        band, seconds = self._predicted.get(measure), self._outcome.seconds.get(measure)
        low, high = self._accepted(band) if band else (0.0, 0.0)
        return Row(measure, seconds, band, low, high, self._standing(measure, band, seconds, (low, high)))

    def _accepted(self, band: Band) -> tuple[float, float]:
        margin = self._terms.resolution + widening(band)
        low, high = band.low - margin, band.high + margin
        if band.high + self._terms.resolution >= self._return:
            high += SYNC
        if self._is_race(band.measure):
            low, high = low - SYNC, high + SYNC
        return max(0.0, round(low, 3)), round(high, 3)

    def _standing(
        self, measure: Measure, band: Band | None, seconds: float | None, accepted: tuple[float, float]
    ) -> Standing:
        low, high = accepted
        if seconds is None:
            return self._absent(measure, band, high)
        if band is None:
            if self._is_race(measure):
                return Standing.CHANCE
            is_beyond = seconds > self._terms.horizon - self._terms.resolution or self._ends_late(measure)
            return Standing.UNKNOWN if is_beyond else Standing.UNEXPECTED
        if low <= seconds <= high:
            return Standing.INSIDE
        return Standing.EARLY if seconds < low else Standing.LATE

    def _absent(self, measure: Measure, band: Band | None, high: float) -> Standing:
        """What most seeds predict did not happen: surprising only if none of them is without it."""
        if band is None or band.happened < band.outcomes:
            return Standing.CHANCE
        if self._is_race(measure):
            return Standing.CHANCE
        end = _ENDS.get(measure.what)
        if end is not None:  # a duration is measured at its end
            last = self._predicted.get(Measure(measure.kind, measure.subject, end))
            high = self._accepted(last)[1] if last else high
        return Standing.MISSING if high <= self._outcome.observed else Standing.UNKNOWN

    def _ends_late(self, measure: Measure) -> bool:
        """Whether the duration ended only after what was predicted."""
        at = time_of_end(measure, self._outcome.seconds)
        return measure.what in _ENDS and self._terms.horizon - self._terms.resolution < at < float("inf")

    def _is_race(self, measure: Measure) -> bool:
        """Whether it is about pods that a kubelet rejects until it is stopped: one more or less is chance.

        The first of them is created whatever happens to it then.
        """
        if measure.kind is not Kind.REPLACEMENT or measure.what == READY or _group(measure) not in self._races:
            return False
        return not (measure.subject.startswith("1 of ") and measure.what in (CREATED, SCHEDULED))


def _group(measure: Measure) -> str:
    """The owner and its node, without the rank."""
    return measure.subject.partition(" of ")[2]


def _is_return(measure: Measure) -> bool:
    return measure.kind is Kind.NODE and measure.what.startswith(READY_AGAIN)


def _time(row: Row) -> float:
    return row.seconds if row.seconds is not None else (row.band.p50 if row.band else 0.0)
