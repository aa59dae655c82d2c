"""Quantifiers: one three-valued signal for each, any, none or a count of many subjects."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from msgspec import structs

from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.verdict import Status
from chaos.verdicts.judge.roster import AlikeSubjects
from chaos.verdicts.judge.sequence import in_sequence

_NOT_OBSERVED = "not observed yet"


def combine(subjects: SubjectSet) -> Signal:
    """Combine the signals of all subjects by the quantifier."""
    if subjects.counted is not None:
        return subjects.counted
    return Signal(tuple(tally.sample(change) for change, tally in tallies(subjects)))


def tallies(subjects: SubjectSet) -> Iterator[tuple[Sample, Tally]]:
    """The tally after each change. It is one object that the next change updates."""
    subjects = _without_doubtful(subjects)
    tally = Tally(subjects, _representatives(subjects))
    changes = in_sequence([subject.signal for subject in tally.representatives])
    yield Sample(-math.inf, None, None, ""), tally
    followed = zip(changes, [*changes[1:], (0, None)], strict=False)  # nothing follows the last change
    for (index, sample), (_, following) in followed:
        tally.update(index, sample)
        t = sample.t
        is_moment = following is not None and following.t == t and sample.earliest >= t and following.earliest >= t
        if not is_moment:  # subjects that change at one exact moment change together
            yield sample, tally


def _without_doubtful(subjects: SubjectSet) -> SubjectSet:
    """The set; what subjects that may not belong to it would decide is unknown."""
    found = subjects.subjects
    if isinstance(found, AlikeSubjects) or all(subject.is_certain for subject in found):
        return subjects
    decisive = {subjects.quantifier is not Quantifier.EACH}
    if subjects.quantifier is not Quantifier.COUNT and not any(subject.is_certain for subject in found):
        decisive = {True, False}  # else the set would be empty, which decides nothing
    blurred = (subject if subject.is_certain else _doubtful(subject, decisive) for subject in found)
    return replace(subjects, subjects=tuple(blurred))


def _doubtful(subject: Subject, decisive: Collection[bool | None]) -> Subject:
    samples = (
        structs.replace(s, value=None, observation=f"perhaps not in the set: {s.observation}")
        if s.value in decisive
        else s
        for s in subject.signal.samples
    )
    return structs.replace(subject, signal=Signal(tuple(samples)))


def _representatives(subjects: SubjectSet) -> list[tuple[Subject, int]]:
    """Representative subjects, each with the number of equal subjects that it represents."""
    found = subjects.subjects
    if isinstance(found, AlikeSubjects):
        return [(found[index], weight) for index, weight in found.representatives]
    return [(subject, 1) for subject in found]


class Tally:
    """The current values of all subjects. Representatives stand for many equal subjects."""

    def __init__(self, subjects: SubjectSet, representatives: Sequence[tuple[Subject, int]]) -> None:
        self.subjects = subjects
        self.size = len(subjects.subjects)
        self.representatives = [subject for subject, _ in representatives]
        self.weights = [weight for _, weight in representatives]
        start = Sample(float("-inf"), None, None, _NOT_OBSERVED)
        self.current: list[Sample] = [start] * len(representatives)
        self.number: dict[bool | None, int] = {True: 0, False: 0, None: self.size}  # of subjects
        self.by_value: dict[bool | None, dict[int, None]] = {
            True: {},
            False: {},
            None: dict.fromkeys(range(len(representatives))),
        }
        self.value = self._decided()

    def update(self, index: int, sample: Sample) -> None:
        former, value = self.current[index].value, sample.value
        self.current[index] = sample
        del self.by_value[former][index]
        self.by_value[value][index] = None
        if former is not value:
            self.number[former] -= self.weights[index]
            self.number[value] += self.weights[index]
            self.value = self._decided()

    def _decided(self) -> bool | None:
        return decide(self.subjects, self.number[True], self.number[False], self.number[None])

    def sample(self, change: Sample) -> Sample:
        """The value after ``change``."""
        value, true = self.value, self.number[True]
        lag = value is None and any(self.current[index].is_lag for index in reversed(self.by_value[None]))
        decisive = self._decisive_index(value)
        if decisive is None:
            return Sample(change.t, value, change.seq, self.count(true), change.earliest, change.order, lag)
        seq = self.current[decisive].seq
        text = self._describe(decisive, true)
        seq = change.seq if seq is None else seq
        return Sample(change.t, value, seq, text, change.earliest, change.order, lag)

    def _decisive_index(self, value: bool | None) -> int | None:
        """The index of the subject to report for this value, or None."""
        quantifier, by_value = self.subjects.quantifier, self.by_value
        if quantifier is Quantifier.COUNT and value is not None:
            return next(iter(by_value[True] or by_value[False]), None)
        if quantifier is Quantifier.NONE and value is not None:
            value = not value
        return next(iter(by_value[value]), None)

    def _describe(self, index: int, true: int) -> str:
        name, observation = self.representatives[index].name, self.current[index].observation
        text = f"{name}: {observation}" if name else observation
        if self.subjects.quantifier is Quantifier.COUNT:
            has_example = true or self.current[index].value is None
            return f"{self.count(true)}, for example {text}" if has_example else self.count(true)
        same = self.number[self.current[index].value]
        return text if same == 1 else f"{same} of {self.size}, for example {text}"

    def count(self, number: int) -> str:
        """``2 of 3 pods Ready``."""
        return f"{number} of {self.size} {self.subjects.unit}".rstrip()


def decide(subjects: SubjectSet, true: int, false: int, unknown: int) -> bool | None:
    """Value of the quantifier for the given numbers of subjects; an empty set satisfies only a count."""
    if subjects.quantifier is Quantifier.COUNT:
        most = float("inf") if subjects.most is None else subjects.most
        if subjects.least <= true and true + unknown <= most:
            return True
        return False if true + unknown < subjects.least or true > most else None
    if not true + false + unknown:
        return None
    if subjects.quantifier is Quantifier.EACH:
        return False if false else (None if unknown else True)
    is_any = True if true else (None if unknown else False)
    if subjects.quantifier is Quantifier.NONE:
        return None if is_any is None else not is_any
    return is_any


def any_of_each(subjects: SubjectSet) -> SubjectSet:
    """Replace EACH by ANY: under never, one node that reboots is one too many."""
    return replace(subjects, quantifier=Quantifier.ANY) if subjects.quantifier is Quantifier.EACH else subjects


def is_behind(subjects: SubjectSet, deadline: float | None) -> bool:
    """Whether changes from before the deadline may still be received."""
    until = math.inf if deadline is None else deadline
    last = (subject.signal.samples[-1] for subject, _ in _representatives(subjects) if subject.signal.samples)
    return any(sample.is_lag and sample.lo < until for sample in last)


def decide_statuses(subjects: SubjectSet, statuses: Sequence[Status]) -> Status:
    """Status of a set of subjects that were judged separately, each with its own deadline."""
    doubtful = Status.VIOLATED if subjects.quantifier is Quantifier.EACH else Status.HELD
    pairs = zip(subjects.subjects, statuses, strict=True)
    found = [Status.INCONCLUSIVE if status is doubtful and not s.is_certain else status for s, status in pairs]
    held, violated = found.count(Status.HELD), found.count(Status.VIOLATED)
    value = decide(subjects, held, violated, len(found) - held - violated)
    if subjects.quantifier is not Quantifier.COUNT and not any(s.is_certain for s in subjects.subjects):
        value = None
    if value is None:
        return Status.PENDING if Status.PENDING in statuses else Status.INCONCLUSIVE
    return Status.HELD if value else Status.VIOLATED
