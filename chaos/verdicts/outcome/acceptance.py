"""Whether an outcome lies in the predicted band. Pure.

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

from chaos.verdicts.outcome.measure import Kind, Measure, Outcome
from chaos.verdicts.outcome.outcome import (
    ENOUGH,
    FEWER_FOR,
    NONE_FOR,
    NOTICED,
    READY_AGAIN,
    SHUTDOWN_SEEN,
    SOME,
    UNNOTICED_FOR,
)
from chaos.verdicts.outcome.pods import CREATED, READY, SCHEDULED, UNREADY, UNSCHEDULABLE
from chaos.verdicts.outcome.prediction import Band

RESOLUTION, SIMULATED_RESOLUTION = 2.0, 1.0  # seconds
_FALSE_ALARM = 0.001
_ENDS = {FEWER_FOR: ENOUGH, NONE_FOR: SOME, UNNOTICED_FOR: NOTICED}
_OF_POWER = (UNNOTICED_FOR, NOTICED)  # compared only where both sides have a power control that was read
SYNC = 10.4  # seconds; period of a kubelet's Lease renewals and status syncs, with jitter (facts 5.1)
_PASS = 5.2  # seconds between two passes of the node lifecycle controller (facts 5.2)
_ORPHANS = 40.0  # seconds; period of pod GC, twice for pods of a deleted Node (facts 6 and 11)
REJECTED, _DISRUPTED = "Failed (NodeShutdown)", "disrupted by "


class Standing(StrEnum):
    """The position of a measure relative to its band."""

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
    """Terms of a comparison. ``horizon``: predicted seconds after the fault. ``resolution``: with offsets of clocks.

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
    """The seconds by which a band from few seeds is too narrow on each side."""
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
        if measure.what in _OF_POWER and (seconds is None or band is None):
            return Standing.UNKNOWN
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
        """The row of a measure that most seeds predict but that did not happen. It is a surprise only if all seeds
        have it.
        """
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
        """Whether the duration ended later than predicted."""
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


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``facts``: section of docs/kubernetes-facts.md. ``period``: seconds of the periodic work that it waits for."""

    text: str
    facts: str
    period: float

    @property
    def link(self) -> str:
        """Page and section, such as ``kubernetes-facts.md (5.2)``."""
        return f"kubernetes-facts.md ({self.facts})"


_UNKNOWN = Mechanism(
    "grace period after the last Lease, at a pass of the node lifecycle controller", "5.2", SYNC + _PASS
)
_SHUTDOWN = Mechanism("the kubelet reports its shutdown", "1.4", SYNC)
_RETURN = Mechanism("the kubelet's first status after its return", "5.1", SYNC)
_TAINTS = Mechanism("taints follow Ready, at once or with the next pass", "5.4", SYNC + _PASS)
_ZONES = Mechanism("nodes are tainted one after another, within the limits of their zone", "5.5", SYNC + _PASS)
_UNREADY = Mechanism("pods of a lost node are marked not Ready; otherwise the kubelet does it", "5.3", SYNC + _PASS)
_TAINT_EVICTION = Mechanism("tolerationSeconds after the taint", "5.6", SYNC + _PASS)
_BUCKETS = Mechanism("the kubelet ends pods by priority, each within its grace period", "1.3", SYNC)
_POD_GC = Mechanism("pod garbage collection", "11", _ORPHANS)
_EVICTION = Mechanism("the eviction API and its budgets", "8.1", SYNC)
_DISRUPTION = Mechanism("a disruption", "9", SYNC)
_END = Mechanism("containers end within their grace period, and the kubelet reports it", "1.6", SYNC + _PASS)
_REJECTION = Mechanism("a kubelet that shuts down rejects pods until it is stopped", "1.6", SYNC)
_REPLACED = Mechanism("a controller replaces the pod once it is terminal, deleted or gone", "5.7", SYNC + _PASS)
_BOUND = Mechanism("the scheduler finds a node", "12", SYNC + _PASS)
_START = Mechanism("containers start: images, volumes and probes of the pod", "12", SYNC + _PASS)
_VOLUMES = Mechanism(
    "volumes are detached when the kubelet no longer reports them in use, or after six minutes", "7", SYNC
)
_READY_PODS = Mechanism("ready pods of a workload", "5.7", SYNC + _PASS)
_BY_REASON = {
    "DeletionByTaintManager": _TAINT_EVICTION,
    "TerminationByKubelet": _BUCKETS,
    "DeletionByPodGC": _POD_GC,
    "EvictionByEvictionAPI": _EVICTION,
}
_BY_KIND = {Kind.ZONE: _ZONES, Kind.VOLUME: _VOLUMES, Kind.WORKLOAD: _READY_PODS}
_PODS = {UNREADY: _UNREADY, CREATED: _REPLACED, SCHEDULED: _BOUND, UNSCHEDULABLE: _BOUND, READY: _START}


def mechanism_of(measure: Measure) -> Mechanism:
    """The mechanism that decides when it comes true."""
    if measure.kind is Kind.NODE:
        return _of_node(measure.what)
    return _BY_KIND.get(measure.kind) or _of_pod(measure.what)


def _of_pod(what: str) -> Mechanism:
    if what == REJECTED:
        return _REJECTION
    if what.startswith(_DISRUPTED):
        return _BY_REASON.get(what.removeprefix(_DISRUPTED), _DISRUPTION)
    return _PODS.get(what, _END)


def _of_node(what: str) -> Mechanism:
    if what.startswith("Ready=Unknown") or what in (UNNOTICED_FOR, NOTICED):
        return _UNKNOWN
    if what.startswith(READY_AGAIN):
        return _RETURN
    if what.startswith((SHUTDOWN_SEEN, "Ready=")):
        return _SHUTDOWN
    return _TAINTS
