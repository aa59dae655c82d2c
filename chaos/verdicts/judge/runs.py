"""Stretches of one value in a signal, its runs: each begins at an uncertain moment, and ends where the next begins.

What fits the observations is every choice of these moments that keeps their order. A run of a version existed, however
short it was: it counts in each of these histories if it overlaps the time in question in each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.core.signal import NO_OBSERVATION, Sample, Signal, Start


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
