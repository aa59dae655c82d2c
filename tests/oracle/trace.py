"""A statement over time, whose changes happened between bounds, and what an operator may say of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Value = bool | None  # None: unknown, and anything may have been
HELD, VIOLATED = "held", "violated"
BOTH = frozenset({HELD, VIOLATED})


@dataclass(frozen=True, slots=True)
class Change:
    """From a moment in [lo, hi] on the statement has the value. ``order``: of the version that changed it."""

    lo: float
    hi: float
    value: Value
    order: float | None = None


Trace = list[Change]  # the first one from -inf on; moments never go back
Row = tuple[float, float, Value, float | None]  # lo, hi, value and order of a change


def no(value: Value) -> Value:
    return None if value is None else not value


def all_of(values: Iterable[Value]) -> Value:
    """Kleene's and."""
    found = list(values)
    return False if False in found else None if None in found else True


def any_of(values: Iterable[Value]) -> Value:
    """Kleene's or."""
    return no(all_of(no(v) for v in values))


def one_of(values: set[Value]) -> Value:
    """The only value; unknown if there are several."""
    return values.pop() if len(values) == 1 else None


def steps_of(rows: Iterable[Row], first: Value = None) -> Trace:
    """A trace of changes in the order of time; a repeated value is none. Of a first list only the end counts."""
    trace = [Change(-math.inf, -math.inf, first)]
    for lo, hi, value, order in rows:
        if lo == -math.inf:
            trace = [Change(lo, lo, value)]
        elif value != trace[-1].value:
            trace.append(Change(lo, hi, value, order))
    return trace


def negated(trace: Trace) -> Trace:
    return [Change(c.lo, c.hi, no(c.value), c.order) for c in trace]


def masked(trace: Trace, windows: Iterable[tuple[float, float]]) -> Trace:
    """Unknown in the windows. A change that may have been in one is not seen there: so is the time from or to it."""
    for begin, end in windows:
        if end <= begin:
            continue
        for c in trace:  # before the window or after it: then all between is unknown
            if c.lo < begin and end < c.hi:
                begin, end = min(begin, c.lo), max(end, c.hi)  # noqa: PLW2901
        before = [c if c.hi < begin else Change(c.lo, begin, None, c.order) for c in trace if c.lo < begin]
        last = [c for c in trace if c.hi <= end or c.lo < begin][-1:] or [Change(begin, begin, None)]
        border = [c for c in trace if begin <= c.lo <= end < c.hi]
        trace = [*before, Change(begin, begin, None)] + [c for c in trace if c.lo > end]
        if end < math.inf:
            seen = [Change(end, end, None if border else last[0].value)]
            seen += [Change(end, c.hi, c.value if c is border[-1] else None, c.order) for c in border]
            trace[len(before) + 1 : len(before) + 1] = seen
    return trace


def sampled(moments: Iterable[float], value: Callable[[float], Value]) -> Trace:
    """A trace of what is known at each moment by itself: at these, and between them."""
    points = sorted({m for m in moments if math.isfinite(m)})
    if not points:
        return [Change(-math.inf, -math.inf, value(0.0))]
    values: list[Row] = []
    for this, following in zip(points, [*points[1:], math.inf], strict=True):
        values.append((this, this, value(this), None))
        between = this + 1 if following == math.inf else (this + following) / 2
        after = math.nextafter(this, math.inf)
        if after < following:
            values.append((after, after, value(between), None))
    return steps_of(values, value(points[0] - 1))


def combined(traces: Sequence[Trace], how: Callable[[Iterable[Value]], Value]) -> Trace:
    """Several statements, whose changes have no order among each other, by what is certain at each moment."""
    if len(traces) == 1:
        return traces[0]
    moments = [m for trace in traces for c in trace for m in (c.lo, c.hi, math.nextafter(c.hi, -math.inf))]
    return sampled(moments, lambda t: how(value_at(trace, t) for trace in traces))


def value_at(trace: Trace, t: float) -> Value:
    """The value at a moment, unknown if it may have had two."""
    values = set()
    for i, change in enumerate(trace):
        ends = trace[i + 1].hi if i + 1 < len(trace) else math.inf
        if change.lo <= t and (ends > t or change.hi == ends == t):
            values.add(change.value)
    return values.pop() if len(values) == 1 else None


def ordered(trace: Trace, a: float, order: float | None) -> Trace:
    """The trace if the version of ``order`` was stored at ``a``."""
    if order is None:
        return trace
    found: Trace = []
    for c in trace:
        lo, hi = c.lo, c.hi
        if c.order is not None:
            lo = a if c.order == order else max(lo, a) if c.order > order else lo
            hi = a if c.order == order else min(hi, a) if c.order < order else hi
        value = None if lo > hi and c.hi < a else c.value  # it was in a window that begins before
        lo = max(min(lo, hi), found[-1].lo if found else lo)
        found.append(Change(lo, max(hi, lo), value, c.order))
    return found


def runs(trace: Trace, values: tuple[Value, ...]) -> list[tuple[Change, float, float]]:
    """The longest stretches with these values: their first change, and the bounds of their end."""
    found, first = [], None
    for change in [*trace, None]:
        inside = change is not None and change.value in values
        if first is None and inside:
            first = change
        elif first is not None and not inside:
            found.append((first, change.lo, change.hi) if change else (first, math.inf, math.inf))
            first = None
    return found


def always(trace: Trace, a: float, b: float) -> frozenset[str]:
    """What "true throughout [a, b)" may be."""
    held = any(c.lo <= a and hi >= b for c, _, hi in runs(trace, (True, None)))
    violated = False
    for c, _, hi in runs(trace, (False, None)):
        violated |= c.lo < b and (hi > a or (hi == a and c.hi >= a))
    return _possible(held, violated)


def within(trace: Trace, a: float, bound: float, lasting: float | None) -> frozenset[str]:
    """What "true at a moment of [a, a + bound]" may be, or true from there on for ``lasting``."""
    b = a + bound
    if lasting:
        held = any(c.lo <= b and hi >= max(c.lo, a) + lasting for c, _, hi in runs(trace, (True, None)))
        too_short = [c.hi > b or lo - max(c.hi, a) < lasting for c, lo, _ in runs(trace, (True,))]
        return _possible(held, all(too_short))
    held = any(c.lo <= b and (hi > a or (hi == a and c.hi >= a)) for c, _, hi in runs(trace, (True, None)))
    violated = any(c.lo <= a and hi > b for c, _, hi in runs(trace, (False, None)))
    return _possible(held, violated)


def _possible(held: bool, violated: bool) -> frozenset[str]:
    if not held and not violated:  # borders that meet
        return BOTH
    return frozenset(name for name, is_so in ((HELD, held), (VIOLATED, violated)) if is_so)


def first_true(trace: Trace, a: float, bound: float) -> tuple[float, float]:
    """Bounds of the first moment of [a, a + bound] at which it is true; infinite if there may be none."""
    early, late = math.inf, math.inf
    for c, _, hi in runs(trace, (True, None)):
        if c.lo <= a + bound and hi >= a:
            early = min(early, max(c.lo, a))
    for c, lo, _ in runs(trace, (True,)):
        if c.hi <= a + bound and (lo > a or c.lo >= a):
            late = min(late, max(c.hi, a))
    return early, late
