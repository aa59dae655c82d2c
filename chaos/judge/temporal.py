"""Temporal operators on three-valued signals.

Unknown never decides: a blind window may make an answer undecided, but never turns held into violated or back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from chaos.model.signal import Sample, Signal, Span
from chaos.model.verdict import Status

_EPSILON = 1e-6  # seconds; sums of floats


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a temporal operator.

    ``sample`` was decisive, at the moment ``at``: the truth, the failure, or the unknown sample. PENDING: the signal
    is not known far enough. ``longest_run``: seconds of the longest run of truth that was too short, None without
    one; ``late_span``: the first truth after the deadline.
    """

    status: Status
    at: float
    sample: Sample
    longest_run: float | None = None
    late_span: Span | None = None


def within(signal: Signal, start: float, deadline: float, hold: float, horizon: float) -> Answer:
    """Whether the signal is true at some moment in [start, deadline] and stays true for ``hold`` seconds.

    A signal that is already true at ``start`` counts.
    """
    end = deadline + hold
    runs = list(_runs(signal, start, end, horizon))
    for run in runs:
        if run.start <= deadline and _is_long_enough(run, hold):
            return Answer(Status.HELD, run.start, run.sample)
    doubts = [
        span
        for run in _possible_runs(signal, start, end, horizon)
        if run[0].start <= deadline and run[-1].end - run[0].start >= hold - _EPSILON
        for span in run
        if span.sample.value is None
    ]
    if doubts:
        future = doubts[-1].start >= horizon and doubts[-1].end > horizon
        known = [span for span in doubts if span.start < min(deadline, horizon)] or doubts[:1]
        return Answer(Status.PENDING if future else Status.INCONCLUSIVE, known[-1].start, known[-1].sample)
    longest = max((run.end - run.start for run in runs), default=None)
    late = next((s for s in signal.spans(deadline, horizon) if s.sample.value and s.start > deadline), None)
    return Answer(Status.VIOLATED, deadline, signal.at(min(deadline, horizon)), longest, late)


def always(signal: Signal, start: float, end: float, horizon: float) -> Answer:
    """Whether the signal is true at every moment of [start, end)."""
    reach = min(end, horizon)
    spans = [s for s in signal.spans(start, reach) if s.start < reach or start >= reach]
    if horizon < start:
        spans = []
    broken = next((s for s in spans if s.sample.value is False), None)
    if broken:
        return Answer(Status.VIOLATED, broken.start, broken.sample)
    doubt = next((s for s in spans if s.sample.value is None), None)
    if horizon < end:
        return Answer(Status.PENDING, horizon, doubt.sample if doubt else signal.at(horizon))
    if doubt:
        return Answer(Status.INCONCLUSIVE, doubt.start, doubt.sample)
    return Answer(Status.HELD, end, signal.at(end))


def never(signal: Signal, start: float, end: float, horizon: float) -> Answer:
    """Whether the signal is true at no moment of [start, end)."""
    return always(negate(signal), start, end, horizon)


def settles(signal: Signal, start: float, deadline: float, horizon: float) -> Answer:
    """Whether the signal is true at the end of [start, deadline], or at the horizon before it.

    ``at`` is the begin of the run of truth that lasts until the end.
    """
    reach = min(deadline, horizon)
    spans = list(signal.spans(start, reach))
    if not spans:
        return Answer(Status.PENDING, start, signal.at(start))
    since = None
    for span in reversed(spans):
        if span.sample.value is not True:
            break
        since = span
    if since:
        return Answer(Status.HELD, since.start, since.sample)
    last = spans[-1]
    if horizon < deadline:
        return Answer(Status.PENDING, horizon, last.sample)
    return Answer(Status.INCONCLUSIVE if last.sample.value is None else Status.VIOLATED, deadline, last.sample)


def first_truth(signal: Signal, start: float, horizon: float) -> tuple[float | None, float | None]:
    """First moment at which the signal may be true, and first at which it certainly is; None without one."""
    earliest = None
    for span in signal.spans(start, horizon):
        if span.sample.value is not False and earliest is None:
            earliest = span.start
        if span.sample.value is True:
            return earliest, span.start
    return earliest, None


def negate(signal: Signal) -> Signal:
    """Negate the signal; unknown stays unknown."""
    return Signal(
        tuple(Sample(s.t, None if s.value is None else not s.value, s.seq, s.observation) for s in signal.samples),
    )


def _spans(signal: Signal, start: float, end: float, horizon: float) -> Iterator[Span]:
    """Spans of [start, end]; the time after ``horizon`` is one unknown span."""
    yield from signal.spans(start, min(end, horizon))
    if horizon < end:
        since = max(start, horizon)
        yield Span(since, end, Sample(since, None, None, "the timeline ends here"))


def _runs(signal: Signal, start: float, end: float, horizon: float) -> Iterator[Span]:
    """Maximal runs of certain truth."""
    for value, group in groupby(_spans(signal, start, end, horizon), key=lambda span: span.sample.value is True):
        if value:
            spans = list(group)
            yield Span(spans[0].start, spans[-1].end, spans[0].sample)


def _possible_runs(signal: Signal, start: float, end: float, horizon: float) -> Iterator[list[Span]]:
    """Maximal runs of spans in which the signal may be true."""
    for value, group in groupby(_spans(signal, start, end, horizon), key=lambda span: span.sample.value is not False):
        if value:
            yield list(group)


def _is_long_enough(run: Span, hold: float) -> bool:
    return run.end - run.start >= hold - _EPSILON
