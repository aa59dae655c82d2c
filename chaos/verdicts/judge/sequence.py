"""One sequence of the changes of many signals, each with the interval in which it happened.

Changes that are versions of the store are in the order of their resourceVersions, whatever their times: a change is
not later than what came after it, and not earlier than what came before. Where it is not known whether a change or
another came first, the signal is unknown for the time of both.
Happenings that are counted since a moment: each was at some moment of an interval, and so was that one.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from chaos.core.signal import Sample, Signal

Change = tuple[int, Sample]  # of the signal with that index


def in_sequence(signals: Sequence[Signal]) -> list[Change]:
    """All samples of ``signals``, in an order that is certain."""
    if len(signals) == 1:
        return [(0, sample) for sample in signals[0].samples]
    series = _with_known_ends(signals)
    uncertain = {index: list(samples) for index, samples in enumerate(series) if _has_interval(samples)}
    if uncertain:
        exact = {t for index, samples in enumerate(series) if index not in uncertain for t in _exact_changes(samples)}
        for index, samples in _certain_order(uncertain, exact).items():
            series[index] = samples
    keyed = [
        (sample.t, 0 if math.isinf(sample.earliest) else sample.order, index, position, sample)
        for index, samples in enumerate(series)
        for position, sample in enumerate(samples)
    ]
    return [(index, sample) for _, _, index, _, sample in sorted(keyed)]


def changes(samples: Iterable[Sample]) -> list[Sample]:
    """The samples that change the value, and the sample since which the value is not proven."""
    found: list[Sample] = []
    for sample in samples:
        if not found or found[-1].value is not sample.value or sample.is_lag:
            found.append(sample)
    return found


def last_gap(samples: Iterable[Sample], until: float) -> tuple[float, int]:
    """The last moment, up to ``until``, at which it is certain of each sample whether it was before or after.

    And the highest order of those before that have an interval; minus infinity and 0 without such a moment.
    """
    moment, order, reach, highest = -math.inf, 0, -math.inf, 0
    ordered = sorted(samples, key=lambda sample: sample.lo)
    lowest = [math.inf]  # order of those from there on
    for sample in reversed(ordered):
        has_order = sample.order and sample.lo < sample.t
        lowest.append(min(lowest[-1], sample.order) if has_order else lowest[-1])
    for sample in ordered:
        if reach < sample.lo and reach <= until and highest < lowest[-1]:
            moment, order = reach, highest
        lowest.pop()
        reach = max(reach, sample.t)
        highest = max(highest, sample.order if sample.lo < sample.t else 0)
    return (reach, highest) if reach <= until else (moment, order)


def _certain_order(series: dict[int, list[Sample]], exact: Collection[float]) -> dict[int, list[Sample]]:
    """The series with intervals, unknown where their order is; ``exact``: moments of the changes of all others."""
    certain = {index: _without_idle_intervals(samples) for index, samples in _narrowed(series).items()}
    while unknown := _with_unknown_order(certain, exact):
        for index, positions in unknown:
            certain[index] = _blur(certain[index], positions)
    return certain


def _blur(samples: Sequence[Sample], positions: Collection[int]) -> list[Sample]:
    """The samples, with unknown values in the intervals of the samples at ``positions``."""
    result: list[Sample] = []
    for position, sample in enumerate(samples):
        if position not in positions:
            result.append(sample)
            continue
        since = sample.lo
        while result and result[-1].t > since:
            since = min(since, result.pop().lo)
        if not result or result[-1].value is not None:
            text = f"it is not known when this changed: {sample.observation}"
            result.append(Sample(since, None, None, text, is_lag=sample.is_lag))
        result.append(sample.moved(sample.t, math.inf))
    return result


def _without_idle_intervals(samples: Sequence[Sample]) -> list[Sample]:
    """The samples. Samples that do not change the value count as exact."""
    result: list[Sample] = []
    for sample in samples:
        idle = result and result[-1].value is sample.value and not sample.is_lag
        result.append(sample.moved(sample.t, sample.t) if idle and sample.earliest < sample.t else sample)
    return result


def _with_known_ends(signals: Sequence[Signal]) -> list[Sequence[Sample]]:
    """The samples up to the moment after which changes may be missing; unknown from then on."""
    ends: dict[int, Sample] = {}  # by the identity of a lag, which many signals share
    series: list[Sequence[Sample]] = []
    for signal in signals:
        samples = signal.samples
        if not samples or not samples[-1].is_lag:
            series.append(samples)
            continue
        *before, lag = samples
        since = lag.lo
        if before and before[-1].t > since:
            while before and before[-1].t > since:
                since = min(since, before.pop().lo)
            series.append([*before, _end(lag, since)])
            continue
        end = ends.get(id(lag))
        if end is None:
            end = ends[id(lag)] = _end(lag, since)
        series.append([*before, end])
    return series


def _end(lag: Sample, since: float) -> Sample:
    return lag.moved(math.nextafter(since, math.inf), math.inf)


def _has_interval(samples: Sequence[Sample]) -> bool:
    for sample in samples:  # noqa: SIM110 - a generator takes twice as long, for each object of a cluster
        if sample.earliest < sample.t:
            return True
    return False


def _narrowed(series: dict[int, list[Sample]]) -> dict[int, list[Sample]]:
    """The series with the intervals that the order of the resourceVersions leaves."""
    ordered = sorted(
        (sample.order, index, position)
        for index, samples in series.items()
        for position, sample in enumerate(samples)
        if sample.order and sample.earliest < sample.t
    )
    lows, highs = {}, {}
    latest = -math.inf
    for _, index, position in ordered:
        latest = lows[index, position] = max(latest, series[index][position].lo)
    earliest = math.inf
    for _, index, position in reversed(ordered):
        earliest = highs[index, position] = min(earliest, series[index][position].t)
    for key, lo in lows.items():
        index, position = key
        series[index][position] = series[index][position].moved(max(lo, highs[key]), lo)
    return series


def _with_unknown_order(series: Mapping[int, Sequence[Sample]], exact: Collection[float]) -> list[tuple[int, set[int]]]:
    """The series, and positions in them, whose interval has the exact change of another, or whose order is unknown."""
    moments = sorted({*exact, *(t for samples in series.values() for t in _exact_changes(samples))})
    found = []
    for index, samples in series.items():
        positions: set[int] = set()
        for group in _overlapping(samples):
            lo, hi = min(samples[p].lo for p in group), max(samples[p].t for p in group)
            if bisect_right(moments, lo) < bisect_left(moments, hi) or not all(samples[p].order for p in group):
                positions.update(group)
        if positions:
            found.append((index, positions))
    return found


def _overlapping(samples: Sequence[Sample]) -> Iterator[list[int]]:
    """Positions of samples with intervals, in groups that overlap."""
    group: list[int] = []
    end = -math.inf
    for position, sample in enumerate(samples):
        if sample.earliest >= sample.t:
            continue
        if group and sample.lo >= end:
            yield group
            group = []
        group.append(position)
        end = max(end, sample.t)
    if group:
        yield group


def _exact_changes(samples: Sequence[Sample]) -> Iterator[float]:
    """The exact moments at which the value changes."""
    before: Sample | None = None
    for sample in samples:
        if sample.earliest >= sample.t and (before is None or before.value is not sample.value):
            yield sample.t
        before = sample


Moments = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened ``number`` times, in (``lo``, ``hi``], or perhaps did; entry ``seq`` shows it."""

    lo: float
    hi: float
    seq: int
    text: str
    number: int = 1
    order: int = 0
    is_certain: bool = True

    def is_since(self, since: Moments) -> bool | None:
        """Whether it happened after some moment in ``since``; None if it may have been on either side."""
        if self.hi <= since[0]:
            return False
        if not self.is_certain:
            return None
        is_after = self.lo >= since[1] or (self.lo == self.hi and self.hi > since[1])
        return True if is_after else None


def count_signal(found: Iterable[Happening], since: Moments, least: int, most: int | None, none: str) -> Signal:
    """Signal of whether the number of happenings since then is in the range. ``none``: the text before the first."""
    limit = math.inf if most is None else most
    samples = [Sample(-math.inf, least == 0, None, none)]
    certain = possible = 0
    for happening in sorted(found, key=lambda each: (each.hi, each.seq)):
        is_since = happening.is_since(since)
        if is_since is False:
            continue
        certain, possible = certain + happening.number * bool(is_since), possible + happening.number
        value: bool | None = None
        if least <= certain and possible <= limit:
            value = True
        elif possible < least or certain > limit:
            value = False
        number = f"{certain}" if certain == possible else f"{certain} to {possible}"
        lo = happening.lo if happening.lo < happening.hi else math.inf
        text = f"{number} observed, the last {happening.text}"
        samples.append(Sample(happening.hi, value, happening.seq, text, max(lo, since[0]), happening.order))
    return Signal(tuple(samples))
