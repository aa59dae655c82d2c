"""Truth over time: true, false or unknown, changing at known moments.

An assertion turns a timeline into one signal per subject; the judge evaluates time words on signals.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from chaos.model.recording import BlindWindow


@dataclass(frozen=True, slots=True)
class Sample:
    """From ``t`` on the statement is ``value`` (None = unknown); ``seen`` says in words what was seen."""

    t: float
    value: bool | None
    seq: int | None
    observation: str


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch [start, end) with one value."""

    start: float
    end: float
    sample: Sample


NO_OBSERVATION = Sample(float("-inf"), None, None, "nothing was seen yet")


@dataclass(frozen=True, slots=True)
class Signal:
    """Samples in order of time; unknown before the first."""

    samples: tuple[Sample, ...]

    def at(self, t: float) -> Sample:
        """The sample in force at ``t``."""
        index = bisect_right(self.samples, t, key=lambda s: s.t)
        return self.samples[index - 1] if index else NO_OBSERVATION

    def spans(self, start: float, end: float) -> Iterator[Span]:
        """The stretches that cover [start, end]; the last one includes ``end``. Empty if end < start."""
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
        """The same signal, unknown inside every blind window."""
        signal = self
        for blind in blinds:
            signal = signal._mask_window(blind)
        return signal

    def _mask_window(self, blind: BlindWindow) -> Signal:
        lasted = "from then on" if blind.end is None else f"for {blind.end - blind.start:.1f}s"
        why = Sample(blind.start, None, None, f"nothing could be seen of {blind.source} {lasted}: {blind.reason}")
        before = [s for s in self.samples if s.t < blind.start]
        if blind.end is None:
            return Signal((*before, why))
        resumed = self.at(blind.end)
        after = [s for s in self.samples if s.t > blind.end]
        return Signal((*before, why, Sample(blind.end, resumed.value, resumed.seq, resumed.observation), *after))


class Quantifier(StrEnum):
    """How many subjects must satisfy the statement."""

    EACH = "each"
    ANY = "any"
    NONE = "none"
    COUNT = "count"  # at least ``SubjectSet.least`` and at most ``SubjectSet.most``


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that the statement is about; ``facts`` are its own bounds (seconds by fact name, None unknown)."""

    name: str
    signal: Signal
    facts: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubjectSet:
    """What an assertion makes of a timeline. ``expected`` says in words what must be true of the subjects.

    ``empty`` says why there are no subjects; then the verdict is inconclusive, unless the quantifier is COUNT.
    """

    expected: str
    subjects: tuple[Subject, ...]
    quantifier: Quantifier = Quantifier.EACH
    least: int = 0
    most: int | None = None
    empty_reason: str = "there is nothing to judge"
