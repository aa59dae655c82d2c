"""One sequence of the changes of many signals, each with the interval in which it happened.

Changes that are versions of the store are in the order of their resourceVersions, whatever their times: a change is
not later than what came after it, and not earlier than what came before. Where it is not known whether a change or
another came first, the signal is unknown for the time of both.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

from chaos.model.signal import Sample, Signal

Change = tuple[int, Sample]  # of the signal with that index


def in_sequence(signals: Sequence[Signal]) -> list[Change]:
    """All samples of ``signals``, in an order that is certain."""
    if len(signals) == 1:
        return [(0, sample) for sample in signals[0].samples]
    series = [_with_known_end(list(signal.samples)) for signal in signals]
    if any(sample.lo < sample.t for samples in series for sample in samples):
        series = [_without_idle_intervals(samples) for samples in _narrowed(series)]
        while unknown := _with_unknown_order(series):
            for index, positions in unknown:
                series[index] = _blur(series[index], positions)
    changes = [(index, sample) for index, samples in enumerate(series) for sample in samples]
    return sorted(changes, key=lambda change: (change[1].t, _rank(change[1]), change[0]))


def _blur(samples: Sequence[Sample], positions: Collection[int]) -> list[Sample]:
    """The samples, unknown in the intervals of those at ``positions``."""
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


def _rank(sample: Sample) -> int:
    return 0 if math.isinf(sample.earliest) else sample.order


def _without_idle_intervals(samples: Sequence[Sample]) -> list[Sample]:
    """The samples; those that do not change the value count as exact."""
    result: list[Sample] = []
    for sample in samples:
        idle = result and result[-1].value is sample.value and not sample.is_lag
        result.append(sample.moved(sample.t, sample.t) if idle and sample.lo < sample.t else sample)
    return result


def _with_known_end(samples: list[Sample]) -> list[Sample]:
    """The samples up to the moment after which changes may be missing; unknown from then on."""
    if not samples or not samples[-1].is_lag:
        return samples
    *before, lag = samples
    since = lag.lo
    while before and before[-1].t > since:
        since = min(since, before.pop().lo)
    return [*before, lag.moved(math.nextafter(since, math.inf), math.inf)]


def _narrowed(series: list[list[Sample]]) -> list[list[Sample]]:
    """The series with the intervals that the order of the resourceVersions leaves."""
    ordered = sorted(
        (sample.order, index, position)
        for index, samples in enumerate(series)
        for position, sample in enumerate(samples)
        if sample.order and sample.lo < sample.t
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


def _with_unknown_order(series: Sequence[Sequence[Sample]]) -> list[tuple[int, set[int]]]:
    """The series, and positions in them, whose interval has the exact change of another, or whose order is unknown."""
    moments = sorted({sample.t for samples in series for sample in _exact_changes(samples)})
    found = []
    for index, samples in enumerate(series):
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
        if sample.lo == sample.t:
            continue
        if group and sample.lo >= end:
            yield group
            group = []
        group.append(position)
        end = max(end, sample.t)
    if group:
        yield group


def _exact_changes(samples: Sequence[Sample]) -> list[Sample]:
    """The samples that change the value at an exact moment."""
    return [
        sample
        for before, sample in zip([None, *samples[:-1]], samples, strict=True)
        if sample.lo == sample.t and (before is None or before.value is not sample.value)
    ]
