"""Truth over time: true, false or unknown, changing at known moments.

An assertion turns a timeline into one signal per subject; the judge evaluates temporal operators on signals.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct

from chaos.core.recording import BlindWindow
from chaos.core.verdict import ValueLimit

Start = tuple["Sample", float, float]  # of a run of one value: earliest and latest moment


class Sample(Struct, frozen=True, gc=False):
    """From some moment in (``earliest``, ``t``] on the statement is ``value`` (None = unknown).

    ``observation`` describes why. ``earliest`` is infinite if ``t`` is exact. ``order``: the resourceVersion of the
    observation, or 0. Of two samples, the one with the lower order happened first. ``is_lag``: unknown only because
    the watch is not proven to be fresh yet.
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


class Signal(Struct, frozen=True, gc=False, eq=False):
    """Samples in order of time; the value is unknown before the first.

    ``settled``: the number of the first samples whose runs were found before, and the starts of these.
    """

    samples: tuple[Sample, ...]
    settled: tuple[int, Sequence[Start]] = (0, ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signal) and self.samples == other.samples

    def __hash__(self) -> int:
        return hash(self.samples)

    def without_repetitions(self) -> Signal:
        """The signal without most of the samples that repeat the state before and after them, such as heartbeats."""
        states = list(self.samples[:1])
        for sample, after in zip(self.samples[1:-1], self.samples[2:], strict=True):
            state, before = (sample.value, sample.observation), states[-1]
            same = state == (before.value, before.observation) == (after.value, after.observation)
            # Of what is received after the last proof, only what has an interval counts.
            counts = sample.lo == sample.t or (before.lo < before.t and after.lo < after.t)
            if not (same and counts) or sample.value is None:
                states.append(sample)
        return Signal((*states, *self.samples[1:][-1:]))

    def without_last_repetition(self) -> Signal:
        """The signal without a last sample that shows the state of the one before: all alike, as most nodes are."""
        *_, before, last = (NO_OBSERVATION, NO_OBSERVATION, *self.samples)
        same = last.value is not None and (before.value, before.observation) == (last.value, last.observation)
        return Signal(self.samples[:-1]) if same else self

    def at(self, t: float) -> Sample:
        """The sample in force at ``t``."""
        if self.samples and self.samples[-1].t <= t:  # as usual
            return self.samples[-1]
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
        """The signal with unknown values after ``until``, the moment up to which the watch of ``source`` is proven
        fresh.
        """
        if math.isinf(until):
            return self
        if not self.samples or self.samples[-1].t <= until:  # as usual
            return Signal((*self.samples, _lag(until, source)))
        # What is computed may not come about; a blind window stays one.
        known = tuple(s for s in self.samples if s.t <= until or s.lo < s.t or s.value is None)
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
        state = self.at(blind.end)
        is_known = not blind.is_of_readings or state.t == blind.end  # a watch begins again with a list
        following = () if is_overtaken or not is_known else (state.moved(blind.end, math.inf),)
        after = [s.moved(s.t, max(s.earliest, blind.end)) for s in after]
        return Signal((*before, unknown, *following, *after))


@lru_cache(64)
def _lag(until: float, source: str) -> Sample:
    """The sample after ``until``, shared by all objects of a source."""
    text = f"{source}: later changes may not have been received yet"
    return Sample(math.nextafter(until, math.inf), None, None, text, until, is_lag=True)


_NO_FACTS: Mapping[str, float | None] = MappingProxyType({})


class Quantifier(StrEnum):
    """Number of subjects that must satisfy the statement."""

    EACH = "each"
    ANY = "any"
    NONE = "none"
    COUNT = "count"  # at least ``SubjectSet.least`` and at most ``SubjectSet.most``


class Subject(Struct, frozen=True, gc=False):
    """A subject of the statement; ``facts`` are its bounds (seconds by fact name, None for unknown).

    ``is_certain``: whether it certainly belongs to the set. Otherwise it only decides what is also true without it.
    """

    name: str
    signal: Signal
    facts: Mapping[str, float | None] = _NO_FACTS
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class SubjectSet:
    """Result of an assertion on a timeline; ``expected`` describes the statement about the subjects.

    ``empty_reason`` is why there are no subjects: the verdict is then inconclusive, unless the quantifier is COUNT.
    ``limits``: the numbers with which it compares measured values. ``counted``: the combination of many subjects that
    ``each`` makes, if it is known without them; ``subjects`` then has one that is proven as far as all of them.
    ``unit`` completes a number of subjects: ``pods Ready`` for ``2 of 3 pods Ready``. ``nearness`` computes from an
    observation how near a subject is to the truth, from 0 to 1; without it, false is 0 and true is 1.
    """

    expected: str
    subjects: Sequence[Subject]
    quantifier: Quantifier = Quantifier.EACH
    least: int = 0
    most: int | None = None
    empty_reason: str = "there is nothing to judge"
    limits: tuple[ValueLimit, ...] = ()
    counted: Signal | None = None
    unit: str = ""
    nearness: Callable[[str], float] | None = field(default=None, compare=False, repr=False)
    each: Callable[[], tuple[Subject, ...]] | None = field(default=None, compare=False, repr=False)

    def one_by_one(self) -> SubjectSet:
        """The set with all its subjects."""
        return self if self.each is None else replace(self, subjects=self.each(), counted=None, each=None)
