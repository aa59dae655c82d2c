"""Happenings that are counted since a moment: each was at some moment of an interval, and so was that one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.core.signal import Sample, Signal

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
