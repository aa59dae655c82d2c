"""Which subjects decide a verdict, and when it is decided."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from chaos.core.signal import Quantifier, Sample, Subject, SubjectSet
from chaos.core.verdict import Status
from chaos.verdicts.judge.roster import AlikeSubjects
from chaos.verdicts.judge.temporal import Answer

T = TypeVar("T", bound=Hashable)
Evaluated = tuple[Subject, Answer, float | None]  # with its deadline


def decisive_subject(evaluated: Sequence[Evaluated], status: Status, quantifier: Quantifier) -> Evaluated | None:
    """The first one with this status; where each had to come true in time, the last one that did."""
    found = [e for e in evaluated if e[1].status is status] or list(evaluated[-1:])
    if status is Status.HELD and quantifier in (Quantifier.EACH, Quantifier.NONE):
        return max(found, key=lambda e: e[1].at, default=None)
    return found[0] if found else None


def violating_subjects(subjects: SubjectSet, answer: Answer, number: int) -> tuple[str, ...]:
    """At most ``number`` names of subjects that violate the expectation, none if it is met, or about a number."""
    quantifier = subjects.quantifier
    if answer.status is not Status.VIOLATED or quantifier is Quantifier.COUNT or answer.sample.value is None:
        return ()
    value = answer.sample.value != (quantifier is Quantifier.NONE)
    known = _known_at(subjects, answer.at)
    return _first_different((name for name, sample in known if name and sample.value is value), number)


def decisive_seqs(subjects: SubjectSet, answer: Answer, number: int) -> tuple[int, ...]:
    """At most ``number`` entries that decided: that of the sample, then of each subject at that moment."""
    seqs = (sample.seq for _, sample in _known_at(subjects, answer.at))
    return _first_different((seq for seq in chain((answer.sample.seq,), seqs) if seq is not None), number)


def _known_at(subjects: SubjectSet, t: float) -> Iterator[tuple[str, Sample]]:
    """Names and samples at ``t`` of the subjects, perhaps without those whose changes may not have been received."""
    found = subjects.subjects
    if isinstance(found, AlikeSubjects):
        return found.known_at(t)
    return ((subject.name, subject.signal.at(t)) for subject in found)


def _first_different(values: Iterable[T], number: int) -> tuple[T, ...]:
    """At most ``number`` values without duplicates; not more are made than are needed."""
    found: dict[T, None] = {}
    for value in values:
        found[value] = None
        if len(found) == number:
            break
    return tuple(found)


def deciding_moment(status: Status, deadline: float, hold: float) -> float:
    """The deadline, or while it is open the end of what began by then: that may still end too early."""
    return deadline if status in (Status.HELD, Status.VIOLATED) else deadline + hold
