"""Which subjects decide a verdict, and when it is decided."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.judge.temporal import Answer
from chaos.model.signal import Quantifier, Sample, Subject, SubjectSet
from chaos.model.verdict import Status

Evaluated = tuple[Subject, Answer, float | None]  # with its deadline


def decisive_subject(evaluated: Sequence[Evaluated], status: Status, quantifier: Quantifier) -> Evaluated | None:
    """The first one with this status; where each had to come true in time, the last one that did."""
    found = [e for e in evaluated if e[1].status is status] or list(evaluated[-1:])
    if status is Status.HELD and quantifier in (Quantifier.EACH, Quantifier.NONE):
        return max(found, key=lambda e: e[1].at, default=None)
    return found[0] if found else None


def violating_subjects(subjects: SubjectSet, answer: Answer, samples: Sequence[Sample]) -> list[str]:
    """Names of the subjects that violate the expectation, none if it is not violated, or about a number."""
    quantifier = subjects.quantifier
    if answer.status is not Status.VIOLATED or quantifier is Quantifier.COUNT or answer.sample.value is None:
        return []
    value = answer.sample.value != (quantifier is Quantifier.NONE)
    names = (s.name for s, sample in zip(subjects.subjects, samples, strict=True) if sample.value is value)
    return list(dict.fromkeys(name for name in names if name))


def deciding_moment(status: Status, deadline: float, hold: float) -> float:
    """The deadline, or while it is open the end of what began by then: that may still end too early."""
    return deadline if status in (Status.HELD, Status.VIOLATED) else deadline + hold
