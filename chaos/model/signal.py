"""Truth over time: true, false or unknown, changing at known moments.

An assertion turns a timeline into one signal per subject; the judge evaluates temporal operators on signals.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from chaos.model.recording import BlindWindow
from chaos.model.value_limit import ValueLimit

Shape = tuple[Hashable, ...]


class Sample(Struct, frozen=True, gc=False):
    """From some moment in (``earliest``, ``t``] on the statement is ``value`` (None = unknown).

    ``observation`` describes why. ``earliest`` is infinite if ``t`` is exact. ``order``: the resourceVersion of what
    was observed, or 0: of two samples, that with the lower one happened first. ``is_lag``: unknown only because the
    watch is not proven to be current yet.
    """

    t: float
    value: bool | None
    seq: int | None
    observation: str
    earliest: float = float("inf")
    order: int = 0
    is_lag: bool = False

    @property
    def lo(self) -> float:
        """The earliest moment."""
        return min(self.t, self.earliest)

    def moved(self, t: float, earliest: float) -> Sample:
        """The sample with another interval; quicker than ``replace``."""
        if t == self.t and earliest == self.earliest:
            return self
        return Sample(t, self.value, self.seq, self.observation, earliest, self.order, self.is_lag)


@dataclass(frozen=True, slots=True)
class Span:
    """An interval [start, end) with one value."""

    start: float
    end: float
    sample: Sample


NO_OBSERVATION = Sample(float("-inf"), None, None, "nothing was observed yet")


@dataclass(frozen=True, slots=True)
class Signal:
    """Samples in order of time; the value is unknown before the first.

    ``shape``: its values and the exact moments of them, if they were found before: signals of one shape are alike.
    """

    samples: tuple[Sample, ...]
    shape: Shape | None = field(default=None, compare=False, repr=False)

    def with_shape(self) -> Signal:
        """The signal with its shape, to be combined with many that are alike; without one if it has intervals."""
        if any(math.isfinite(s.earliest) for s in self.samples):
            return self
        return Signal(self.samples, tuple((s.t, s.value, s.is_lag) for s in self.samples))

    def without_repetitions(self) -> Signal:
        """The signal without most of the samples that show the state of those before and after, as heartbeats do."""
        states = list(self.samples[:1])
        for sample, after in zip(self.samples[1:-1], self.samples[2:], strict=True):
            state, before = (sample.value, sample.observation), states[-1]
            same = state == (before.value, before.observation) == (after.value, after.observation)
            # Of what is received after the last proof, only what has an interval counts.
            counts = sample.lo == sample.t or (before.lo < before.t and after.lo < after.t)
            if not (same and counts) or sample.value is None:
                states.append(sample)
        return Signal((*states, *self.samples[1:][-1:]))

    def at(self, t: float) -> Sample:
        """The sample in force at ``t``."""
        index = bisect_right(self.samples, t, key=lambda s: s.t)
        return self.samples[index - 1] if index else NO_OBSERVATION

    def spans(self, start: float, end: float) -> Iterator[Span]:
        """Intervals that cover [start, end]; the last one includes ``end``. None if end < start."""
        if end < start:
            return
        current, since = self.at(start), start
        for sample in self.samples[bisect_right(self.samples, start, key=lambda s: s.t) :]:
            if sample.t > end:
                break
            if sample.t > since:
                yield Span(since, sample.t, current)
            current, since = sample, sample.t
        yield Span(since, end, current)

    def mask(self, blinds: Iterable[BlindWindow]) -> Signal:
        """The signal with unknown values inside the blind windows."""
        signal = self
        for blind in blinds:
            signal = signal._mask_window(blind)
        return signal

    def mask_lag(self, until: float, source: str) -> Signal:
        """The signal with unknown values after ``until``, up to which the watch of ``source`` is proven current."""
        if math.isinf(until):
            return self
        if not self.samples or self.samples[-1].t <= until:  # as usual
            shape = None if self.shape is None else (self.shape, until)
            return Signal((*self.samples, _lag(until, source)), shape)
        known = tuple(s for s in self.samples if s.t <= until or s.lo < s.t)  # what is computed may not come about
        last = known[-1] if known else NO_OBSERVATION
        lag = _lag(until, source)
        return Signal((*known, lag.moved(max(lag.t, last.t), max(until, last.lo))))

    def _mask_window(self, blind: BlindWindow) -> Signal:
        duration = "from then on" if blind.end is None else f"for {blind.end - blind.start:.1f} s"
        unknown = Sample(blind.start, None, None, f"{blind.source} could not be observed {duration}: {blind.reason}")
        end = math.inf if blind.end is None else blind.end
        before = [s for s in self.samples if s.t < blind.start]
        after = [s for s in self.samples if s.t > end]
        since = min((s.lo for s in self.samples if s.t >= blind.start), default=math.inf)
        while before and before[-1].t > since:  # what may have happened before the window may have been before these
            since = min(since, before.pop().lo)
        unknown = unknown.moved(min(since, blind.start), math.inf)
        if blind.end is None:
            return Signal((*before, unknown))
        is_overtaken = after and after[0].lo < blind.end  # by a change during the list that ends the window
        following = () if is_overtaken else (self.at(blind.end).moved(blind.end, math.inf),)
        after = [s.moved(s.t, max(s.earliest, blind.end)) for s in after]
        return Signal((*before, unknown, *following, *after))


@lru_cache(64)
def _lag(until: float, source: str) -> Sample:
    """The sample after ``until``: one for all objects of a source, of which there may be many."""
    text = f"{source}: later changes may not have been received yet"
    return Sample(math.nextafter(until, math.inf), None, None, text, until, is_lag=True)


class Quantifier(StrEnum):
    """Number of subjects that must satisfy the statement."""

    EACH = "each"
    ANY = "any"
    NONE = "none"
    COUNT = "count"  # at least ``SubjectSet.least`` and at most ``SubjectSet.most``


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of the statement; ``facts`` are its bounds (seconds by fact name, None for unknown)."""

    name: str
    signal: Signal
    facts: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubjectSet:
    """Result of an assertion on a timeline; ``expected`` describes the statement about the subjects.

    ``empty_reason`` is why there are no subjects: the verdict is then inconclusive, unless the quantifier is COUNT.
    ``limits``: the numbers with which it compares measured values.
    """

    expected: str
    subjects: tuple[Subject, ...]
    quantifier: Quantifier = Quantifier.EACH
    least: int = 0
    most: int | None = None
    empty_reason: str = "there is nothing to judge"
    limits: tuple[ValueLimit, ...] = ()
