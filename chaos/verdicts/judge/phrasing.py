"""Sentences about times and answers."""

from __future__ import annotations

import math

from chaos.core.duration import format_duration
from chaos.core.experiment import Expectation, Experiment
from chaos.core.verdict import Status
from chaos.verdicts.judge.runs import Stretch
from chaos.verdicts.judge.temporal import Answer


def with_remedy(because: str, remedy: str) -> str:
    """Reason of an inconclusive verdict, with the observations that would have decided it."""
    return f"{because}; to decide it: {remedy}"


def remedy_of(expectation: Expectation, experiment: Experiment) -> str:
    """Describe the observations that would decide the expectation."""
    ordered = [each for each in experiment.spec.hypothesis if each.title in (expectation.order or ())]
    parts = [each.bound.assertion.needs for each in (expectation, *ordered) if each.bound]
    return "; ".join(dict.fromkeys(parts)) or "an assertion of `nodefall list`"


def format_since(t: float, anchor: float, label: str) -> str:
    """Format ``t`` relative to the anchor, like ``43.9 s after power-off``."""
    distance = t - anchor
    if math.isinf(distance):
        return "never"
    if abs(distance) < 0.05:
        return f"at {label}"
    if distance < 0:
        return f"{-distance:.1f} s before {label}"
    return f"{distance:.1f} s after {label}"


def phrase_within(answer: Answer, anchor: float, label: str, deadline: float, hold: float) -> str:
    """Describe an answer of ``within`` in one sentence."""
    observation = answer.sample.observation
    held = f", and stayed so for {format_duration(hold)}" if hold else ""
    if answer.status is Status.HELD:
        if answer.at <= anchor:
            return f"{observation}, already at {label}{held}"
        return f"{observation}, {format_since(answer.at, anchor, label)}{held}"
    if answer.status is not Status.VIOLATED:
        return _phrase_undecided(answer, anchor, label, f"the deadline ({format_since(deadline, anchor, label)})")
    text = f"{observation} at the deadline, {format_since(deadline, anchor, label)}"
    if answer.longest_run is not None and hold:
        return f"{text}; true for only {answer.longest_run:.1f} s, not for {format_duration(hold)}"
    if answer.late_span:
        late = answer.late_span.start - deadline
        return f"{text}; came true {late:.1f} s too late, {format_since(answer.late_span.start, anchor, label)}"
    return f"{text}; never observed to come true"


def phrase_throughout(answer: Answer, anchor: float, label: str, end: float) -> str:
    """Describe an answer of ``never`` or ``always`` in one sentence."""
    if answer.status is Status.VIOLATED:
        return f"{answer.sample.observation}, {format_since(answer.at, anchor, label)}"
    if answer.status is Status.HELD:
        return f"true at all times until {format_since(end, anchor, label)}"
    return _phrase_undecided(answer, anchor, label, f"the end ({format_since(end, anchor, label)})")


def _phrase_undecided(answer: Answer, anchor: float, label: str, end: str) -> str:
    if answer.doubt is not None:
        return _phrase_readings(answer.doubt, anchor, label, end)
    if answer.status is Status.PENDING:
        lag = f" ({answer.sample.observation})" if answer.sample.is_lag else ""
        return f"the recording ends before {end}{lag}"
    return f"{answer.sample.observation}, {format_since(answer.at, anchor, label)}"


def _phrase_readings(doubt: Stretch, anchor: float, label: str, end: str) -> str:
    """Describe a run that began or ended at an uncertain moment, and the two readings that decide differently."""
    is_begin = doubt.lo < doubt.hi
    times = (doubt.lo, doubt.hi) if is_begin else (doubt.end_lo, doubt.end_hi)
    first, last = (format_since(t, anchor, label) for t in times)
    word = "since" if is_begin else "until"
    return f"{doubt.sample.observation}, {word} {first} or {last}, or any moment between: both fit, with {end}"
