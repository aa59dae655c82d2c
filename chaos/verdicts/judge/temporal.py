"""Temporal operators on three-valued signals whose changes happened at uncertain moments.

An answer is held or violated only if it is so in every history that fits: unknown never decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from msgspec import structs

from chaos.core.signal import NO_OBSERVATION, Sample, Signal, Span, Start
from chaos.core.verdict import Status

_UNPROVEN_END = 10.0  # seconds; other observers continue after the final proof, and the last entry may be one of theirs
_EPSILON = 1e-6  # seconds; sums of floats


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a temporal operator.

    ``sample`` was decisive, at the moment ``at``: the truth, the failure, or what leaves it open. PENDING: the signal
    is not known far enough. ``longest_run``: seconds of the longest run of truth that was too short, None without
    one; ``late_span``: the first truth after the deadline. ``doubt``: the run that began or ended at an uncertain
    moment, which leaves it open.
    """

    status: Status
    at: float
    sample: Sample
    longest_run: float | None = None
    late_span: Span | None = None
    doubt: Stretch | None = None


def within(signal: Signal, start: float, deadline: float, hold: float, horizon: float) -> Answer:
    """Whether the signal is true at some moment in [start, deadline] and stays true for ``hold`` seconds.

    A signal that is already true at ``start`` counts.
    """
    end = deadline + hold
    runs = runs_of(signal, horizon) if horizon < end else runs_of(signal)
    true = [run for run in runs if run.value is True and run.may_overlap(start, end)]
    for run in true:
        if run.overlaps(start, deadline) and _certain_length(run, start, end) >= hold - _EPSILON:
            return Answer(Status.HELD, max(run.hi, start), run.sample)
    doubts = [run for group in _possible_runs(runs) if _may_hold(group, start, deadline, hold) for run in group]
    doubts = [run for run in doubts if run.may_overlap(start, end)]
    if doubts:
        return _undecided(doubts, start, min(deadline, horizon), horizon)
    longest = max((_certain_length(run, start, end) for run in true), default=None)
    late = next((s for s in signal.spans(deadline, horizon) if s.sample.value and s.start > deadline), None)
    return Answer(Status.VIOLATED, deadline, signal.at(min(deadline, horizon)), longest, late)


def always(signal: Signal, start: float, end: float, horizon: float) -> Answer:
    """Whether the signal is true at every moment of [start, end)."""
    reach = min(end, horizon)
    runs = [run for run in runs_of(signal) if run.may_overlap(start, reach) and (run.lo < reach or start >= reach)]
    if horizon < start:
        runs = []
    for run in runs:
        begins = run.hi < reach or run.end_hi <= reach or start >= reach
        if run.value is False and run.overlaps(start, reach) and begins:
            return Answer(Status.VIOLATED, max(run.hi, start), run.sample)
    doubts = [run for run in runs if run.value is not True]
    if horizon < end:
        return Answer(Status.PENDING, horizon, doubts[0].sample if doubts else signal.at(horizon))
    if doubts:
        return _undecided(doubts[:1], start, end, horizon)
    return Answer(Status.HELD, end, signal.at(end))


def never(signal: Signal, start: float, end: float, horizon: float) -> Answer:
    """Whether the signal is true at no moment of [start, end)."""
    return always(negate(signal), start, end, horizon)


def settles(signal: Signal, start: float, deadline: float, horizon: float) -> Answer:
    """Whether the signal is true at the end of [start, deadline], or at the horizon before it.

    ``at`` is the start of the run of truth that lasts until the end.
    """
    runs = runs_of(signal)
    known_until = min(horizon, _known_until(runs))
    reach = min(deadline, known_until)
    if reach < start:
        return Answer(Status.PENDING, start, signal.at(start))
    last = candidates(runs, reach)
    if all(run.value is True for run in last) and (known_until >= deadline or horizon < deadline):
        return Answer(Status.HELD, max(last[0].hi, start) if last[0].hi <= reach else start, last[0].sample)
    if known_until < deadline:
        return Answer(Status.PENDING, known_until, last[-1].sample)
    if all(run.value is False for run in last):
        return Answer(Status.VIOLATED, deadline, last[-1].sample)
    return replace(_undecided([run for run in last if run.value is not True], start, deadline, horizon), at=deadline)


def pinned(signal: Signal, pins: Iterable[tuple[int, float]]) -> Signal:
    """The signal, if the changes with these resourceVersions happened exactly then: others in the store follow them."""
    for order, at in pins:
        moved = (_pinned(sample, order, at) for sample in signal.samples)
        signal = Signal(tuple(sorted(moved, key=lambda sample: sample.t)))
    return signal


def _pinned(sample: Sample, order: int, at: float) -> Sample:
    if sample.order == order:
        return sample.moved(at, math.inf)
    if 0 < sample.order < order and sample.t > at:
        return sample.moved(at, sample.lo if sample.lo < at else math.inf)
    return sample.moved(sample.t, at) if sample.order > order and sample.lo < at < sample.t else sample


def value_near(signal: Signal, t: float, lookback: float) -> Sample:
    """The sample in force at ``t``, or if that is uncertain, at the last moment at which it is not.

    Unknown if that is more than ``lookback`` seconds before, or if what was received since contradicts it.
    """
    runs, moment = runs_of(signal), t
    newer = [sample for sample in signal.samples if sample.value is not None and sample.lo <= t]
    while True:
        found = candidates(runs, moment)
        if len({run.value for run in found}) == 1 and found[-1].value is not None:
            other = next((s for s in newer if s.t > moment and s.value is not found[-1].value), None)
            return found[-1].sample if other is None else _uncertain(other)
        since = min((_before(run) for run in found if run.hi > moment or run.sample.is_lag), default=moment)
        if since >= moment or t - since > lookback:
            return next((run.sample for run in found if run.value is None), _uncertain(found[-1].sample))
        moment = since


def proven_end(signal: Signal, end: float) -> float:
    """The end of a run. Entries after the last freshness proof of the watches are not judged.

    ``end`` itself if they were not proven for longer than that.
    """
    known_until = _known_until(runs_of(signal))
    return known_until if end - _UNPROVEN_END <= known_until < end else end


def _known_until(runs: list[Stretch]) -> float:
    """The moment up to which the watches are fresh."""
    until = math.inf
    for run in reversed(runs):
        if run.value is not None:
            break
        if run.sample.is_lag:
            until = _before(run)
    return until


def _before(run: Stretch) -> float:
    """The last moment at which the run certainly had not begun."""
    return run.lo if run.lo < run.hi else math.nextafter(run.lo, -math.inf)


def candidates(runs: list[Stretch], t: float) -> list[Stretch]:
    """The runs that may be in force at ``t``."""
    return [run for run in runs if (run.lo < t or run.hi <= t) and run.end_hi > t]


def first_runs(signal: Signal, start: float, horizon: float) -> tuple[Stretch | None, Stretch | None]:
    """First run after ``start`` in which the signal may be true, and first in which it certainly is."""
    runs = [run for run in runs_of(signal) if run.may_overlap(start, horizon)]
    possible = next((run for run in runs if run.value is not False), None)
    return possible, next((run for run in runs if run.value is True and run.overlaps(start, horizon)), None)


def was_false(signal: Signal, start: float, end: float) -> bool:
    """Whether the signal was certainly false at some moment of [start, end]."""
    return any(run.value is False and run.overlaps(start, end) for run in runs_of(signal))


def negate(signal: Signal) -> Signal:
    """Negate the signal; unknown stays unknown."""
    return Signal(
        tuple(
            s if s.value is None else Sample(s.t, not s.value, s.seq, s.observation, s.earliest, s.order, s.is_lag)
            for s in signal.samples
        )
    )


def _uncertain(sample: Sample) -> Sample:
    return structs.replace(sample, value=None, observation=f"it is not known when this changed: {sample.observation}")


def _undecided(doubts: list[Stretch], start: float, end: float, horizon: float) -> Answer:
    """The answer if ``doubts`` leave it open: the last that begins before ``end`` is named."""
    known = [run for run in doubts if run.lo < end and run.value is None] or doubts[:1]
    last = known[-1]
    is_open = last.sample.is_lag or (doubts[-1].lo >= horizon and doubts[-1].value is None)
    at = max(start, last.hi if last.value is not None else last.lo)
    status = Status.PENDING if is_open else Status.INCONCLUSIVE
    return Answer(status, at, last.sample, doubt=None if last.value is None else last)


def _possible_runs(runs: list[Stretch]) -> Iterator[list[Stretch]]:
    """Maximal groups of runs in which the signal may be true."""
    for value, group in groupby(runs, key=lambda run: run.value is not False):
        if value:
            yield list(group)


def _may_hold(group: list[Stretch], start: float, deadline: float, hold: float) -> bool:
    """Whether the signal may become true in [start, deadline] and stay so for ``hold`` seconds."""
    first, last = group[0], group[-1]
    begins = first.lo < deadline or first.hi <= deadline
    is_later = start <= first.lo < first.hi  # it begins after that moment, so it is shorter
    longest = last.end_hi - max(first.lo, start)
    return begins and last.end_hi > start and longest >= hold + (_EPSILON if is_later else -_EPSILON)


def _certain_length(run: Stretch, start: float, end: float) -> float:
    """The least length of a run within [start, end]."""
    return max(0.0, min(run.end_lo, end) - max(run.hi, start))


@dataclass(frozen=True, slots=True)
class Stretch:
    """The value of ``sample`` from a moment in (``lo``, ``hi``], or at ``hi`` if they are equal; the end likewise."""

    sample: Sample
    lo: float
    hi: float
    end_lo: float
    end_hi: float

    @property
    def value(self) -> bool | None:
        return self.sample.value

    def may_overlap(self, start: float, end: float) -> bool:
        """Whether the run overlaps [start, end] in some history."""
        begins = self.lo < end or self.hi <= end
        return begins and self.end_hi > start

    def overlaps(self, start: float, end: float) -> bool:
        """Whether the run overlaps [start, end] in every history."""
        lasts = self.end_lo > start or (self.end_lo == start and self.end_hi > start)
        return self.hi <= end and lasts


def runs_of(signal: Signal, horizon: float = math.inf) -> list[Stretch]:
    """The runs of a signal, in order; nothing is known after ``horizon``."""
    number, settled = signal.settled
    if number and signal.samples[number - 1].t <= horizon:
        starts = list(settled)
    else:
        number, starts = 0, first_starts()
    for sample in signal.samples[number:]:
        if sample.t > horizon:
            if sample.lo < horizon:
                unknown = Sample(sample.lo, None, None, f"it is not known when this changed: {sample.observation}")
                add_start(starts, unknown, sample.lo, sample.lo)
            break
        add_start(starts, sample, sample.lo, sample.t)
    if horizon < math.inf:
        end = Sample(horizon, None, None, "the timeline ends here")
        starts.append((end, horizon, horizon))
    return _with_ends(starts)


def first_starts() -> list[Start]:
    """The start before all samples."""
    return [(NO_OBSERVATION, -math.inf, -math.inf)]


def add_start(starts: list[Start], sample: Sample, lo: float, hi: float) -> None:
    """Add the start of a sample. Other evidence from inside its interval makes all of the interval unknown."""
    if lo == hi == starts[-1][1] == starts[-1][2]:  # of two at one exact moment, the later counts
        starts.pop()
    elif starts[-1][1] > lo:
        since = lo
        while starts[-1][2] > since:
            since = min(since, starts.pop()[1])
        unknown = Sample(since, None, None, f"it is not known when this changed: {sample.observation}")
        starts.append((unknown, since, since))
        lo = hi
    if not starts or starts[-1][0].value is not sample.value or sample.value is None:  # each unknown has its reason
        starts.append((sample, lo, hi))


def _with_ends(starts: Sequence[Start]) -> list[Stretch]:
    ends = [(lo, hi) for _, lo, hi in starts[1:]] + [(math.inf, math.inf)]
    return [Stretch(sample, lo, hi, *end) for (sample, lo, hi), end in zip(starts, ends, strict=True)]
