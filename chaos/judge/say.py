"""Times and answers in words."""

from __future__ import annotations

import math

from chaos.judge.words import Answer
from chaos.model.duration import format_duration
from chaos.model.verdict import Status


def needing(because: str, needs: str) -> str:
    """An inconclusive verdict's sentence: why, and what would have decided it."""
    return f"{because}; to decide it: {needs}"


def since(t: float, anchor: float, label: str) -> str:
    """``43.9s after power-off``."""
    distance = t - anchor
    if math.isinf(distance):
        return "which never comes"
    if abs(distance) < 0.05:
        return f"at {label}"
    if distance < 0:
        return f"{-distance:.1f}s before {label}"
    return f"{distance:.1f}s after {label}"


def within_words(answer: Answer, anchor: float, label: str, deadline: float, hold: float) -> str:
    """One sentence for ``within``."""
    seen = answer.sample.seen
    stays = f", and so for {format_duration(hold)}" if hold else ""
    if answer.status is Status.HELD:
        if answer.at <= anchor:
            return f"{seen}, already at {label}{stays}"
        return f"{seen}, {since(answer.at, anchor, label)}{stays}"
    if answer.status is not Status.VIOLATED:
        return _undecided(answer, anchor, label, f"the deadline ({since(deadline, anchor, label)})")
    text = f"{seen}, when its time was over {since(deadline, anchor, label)}"
    if answer.lasted is not None and hold:
        return f"{text}; it was true for {answer.lasted:.1f}s only, not for {format_duration(hold)}"
    if answer.late:
        late = answer.late.start - deadline
        return f"{text}; it only came true {late:.1f}s too late (+{answer.late.start - anchor:.1f}s)"
    return f"{text}; it was never seen to come true"


def throughout_words(answer: Answer, anchor: float, label: str, end: float) -> str:
    """One sentence for ``never`` and ``always``."""
    if answer.status is Status.VIOLATED:
        return f"{answer.sample.seen}, {since(answer.at, anchor, label)}"
    if answer.status is Status.HELD:
        return f"so at all times until {since(end, anchor, label)}"
    return _undecided(answer, anchor, label, f"the end ({since(end, anchor, label)})")


def _undecided(answer: Answer, anchor: float, label: str, end: str) -> str:
    if answer.status is Status.PENDING:
        return f"the recording ends before {end}"
    return f"{answer.sample.seen}, {since(answer.at, anchor, label)}"
