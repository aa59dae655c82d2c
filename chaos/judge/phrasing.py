"""Times and answers in words."""

from __future__ import annotations

import math

from chaos.judge.temporal import Answer
from chaos.model.duration import format_duration
from chaos.model.verdict import Status


def with_remedy(because: str, needs: str) -> str:
    """An inconclusive verdict's sentence: why, and what would have decided it."""
    return f"{because}; to decide it: {needs}"


def format_since(t: float, anchor: float, label: str) -> str:
    """``43.9s after power-off``."""
    distance = t - anchor
    if math.isinf(distance):
        return "which never comes"
    if abs(distance) < 0.05:
        return f"at {label}"
    if distance < 0:
        return f"{-distance:.1f}s before {label}"
    return f"{distance:.1f}s after {label}"


def phrase_within(answer: Answer, anchor: float, label: str, deadline: float, hold: float) -> str:
    """One sentence for ``within``."""
    seen = answer.sample.observation
    stays = f", and so for {format_duration(hold)}" if hold else ""
    if answer.status is Status.HELD:
        if answer.at <= anchor:
            return f"{seen}, already at {label}{stays}"
        return f"{seen}, {format_since(answer.at, anchor, label)}{stays}"
    if answer.status is not Status.VIOLATED:
        return _phrase_undecided(answer, anchor, label, f"the deadline ({format_since(deadline, anchor, label)})")
    text = f"{seen}, when its time was over {format_since(deadline, anchor, label)}"
    if answer.longest_run is not None and hold:
        return f"{text}; it was true for {answer.longest_run:.1f}s only, not for {format_duration(hold)}"
    if answer.late_span:
        late = answer.late_span.start - deadline
        return f"{text}; it only came true {late:.1f}s too late (+{answer.late_span.start - anchor:.1f}s)"
    return f"{text}; it was never seen to come true"


def phrase_throughout(answer: Answer, anchor: float, label: str, end: float) -> str:
    """One sentence for ``never`` and ``always``."""
    if answer.status is Status.VIOLATED:
        return f"{answer.sample.observation}, {format_since(answer.at, anchor, label)}"
    if answer.status is Status.HELD:
        return f"so at all times until {format_since(end, anchor, label)}"
    return _phrase_undecided(answer, anchor, label, f"the end ({format_since(end, anchor, label)})")


def _phrase_undecided(answer: Answer, anchor: float, label: str, end: str) -> str:
    if answer.status is Status.PENDING:
        return f"the recording ends before {end}"
    return f"{answer.sample.observation}, {format_since(answer.at, anchor, label)}"
