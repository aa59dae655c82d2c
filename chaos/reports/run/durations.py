"""Durations that a verdict measured: from the moment from which an expectation counts to the one that decided it."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.core.verdict import Status, Verdict

_EPSILON = 1e-6  # seconds; sums of floats


@dataclass(frozen=True, slots=True)
class Duration:
    """``seconds`` until an expectation came true (``operator`` within) or failed (never, always).

    ``is_exceeded``: it had not come true after ``seconds``, its bound. ``bound``: seconds until the deadline.
    """

    operator: str
    seconds: float
    bound: float
    is_exceeded: bool = False


def measured_duration(verdict: Verdict) -> Duration | None:
    """The duration that a verdict measured; None for one that measured nothing.

    These measure nothing: an inconclusive verdict, one on a moment or an order, and a never or always that held to its
    end. With a deadline for each pod, it is the last pod's that came true, or the one's that did not.
    """
    if verdict.at is None or verdict.start is None or verdict.status not in (Status.HELD, Status.VIOLATED):
        return None
    operator, seconds = operator_of(verdict), max(0.0, verdict.at - verdict.start)
    bound = seconds if verdict.deadline is None else max(0.0, verdict.deadline - verdict.start)
    is_held = verdict.status is Status.HELD
    if not operator or (operator != "within" and is_held):
        return None
    return Duration(operator, seconds, bound, is_exceeded=operator == "within" and not is_held)


def operator_of(verdict: Verdict) -> str:
    """The temporal operator. Of a result of 0.1.0, which has none, what the times allow: only within holds early."""
    if verdict.operator or verdict.at is None or verdict.start is None or verdict.deadline is None:
        return verdict.operator
    if verdict.deadline <= verdict.start or verdict.assertion == "order":
        return ""
    is_early = verdict.at < verdict.deadline - _EPSILON
    return "within" if is_early == (verdict.status is Status.HELD) else "never"
