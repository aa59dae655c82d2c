"""Which subjects decide a verdict, and at which moment. If an assertion raises an exception, nothing is decided:
unknown is neither held nor violated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from chaos.core.assertion import NotYetDecidable, Undecidable
from chaos.core.experiment import OPERATORS, Expectation
from chaos.core.recording import LAG_BOUND
from chaos.core.signal import Quantifier, Sample, Subject, SubjectSet
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.roster import AlikeSubjects
from chaos.verdicts.judge.sentences import remedy_of, with_remedy
from chaos.verdicts.judge.temporal import Answer

T = TypeVar("T", bound=Hashable)
Evaluated = tuple[Subject, Answer, float | None]  # with its deadline
MAX_EVIDENCE = 50  # entries, and names of subjects, that a verdict has
_LATE_SAMPLE_GRACE = 5.0  # seconds after a deadline in which, live, a reading of the time before it may still arrive
_log = logging.getLogger(__name__)


def decisive_subject(evaluated: Sequence[Evaluated], status: Status, quantifier: Quantifier) -> Evaluated | None:
    """The first subject with this status. If each subject had to become true in time, the last one that did."""
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
    """At most ``number`` entries that decided: the entry of the sample, then the entries of the subjects at that
    moment.
    """
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


def make_verdict(
    expectation: Expectation, subjects: SubjectSet, answer: Answer, assumed: Mapping[str, object]
) -> Verdict:
    """The verdict of an answer, without its words and times. ``assumed``: values of facts that were not recorded."""
    return Verdict(
        name=expectation.title,
        assertion=expectation.assert_ or "",
        status=answer.status,
        because="",
        observed=answer.sample.observation,
        at=answer.at,
        evidence=decisive_seqs(subjects, answer, MAX_EVIDENCE),
        assumed_facts=tuple(f"{name}={value}" for name, value in assumed.items()),
        subjects=violating_subjects(subjects, answer, MAX_EVIDENCE),
        operator=next((word for word in OPERATORS if getattr(expectation, word) is not None), ""),
        limits=subjects.limits,
    )


def deciding_moment(status: Status, deadline: float, hold: float) -> float:
    """The deadline, or while it is open the end of what began by then: that may still end too early."""
    return deadline if status in (Status.HELD, Status.VIOLATED) else deadline + hold


def guard(expectation: Expectation, context: JudgeContext, horizon: float, judge: Callable[[], Verdict]) -> Verdict:
    """Return the verdict, inconclusive after an error, with the remedy if it is inconclusive."""
    verdict = Verdict(expectation.title, expectation.assert_ or "order", Status.INCONCLUSIVE, "")
    remedy = remedy_of(expectation, context.experiment)
    try:
        verdict = judge()
    except NotYetDecidable as error:
        verdict = replace(verdict, status=Status.PENDING, because=str(error))
        remedy = error.remedy
    except Undecidable as error:
        verdict = replace(verdict, because=str(error))
        remedy = error.remedy or remedy
    except Exception as error:  # noqa: BLE001 - a bug in an assertion proves nothing, and must not end the run
        _log.exception("judging %r failed", expectation.title)
        verdict = replace(verdict, because=f"the judge failed: {type(error).__name__}: {error}")
        remedy = "a bug fix; please report this error"
    else:
        if verdict.status is Status.PENDING:
            remedy = "a recording that lasts until then"
    verdict = replace(verdict, status=_status_now(verdict, context.live, horizon))
    if verdict.status is Status.INCONCLUSIVE:
        verdict = replace(verdict, because=with_remedy(verdict.because, remedy))
    return verdict


def _status_now(verdict: Verdict, live: bool, horizon: float) -> Status:
    """The status; while a run is live, what later entries may still decide is pending."""
    if verdict.status is Status.PENDING:
        is_over = verdict.deadline is not None and horizon >= verdict.deadline + LAG_BOUND
        return Status.PENDING if live and not is_over else Status.INCONCLUSIVE
    if verdict.status is Status.INCONCLUSIVE and live and verdict.deadline is not None:
        return Status.PENDING if horizon < verdict.deadline + _LATE_SAMPLE_GRACE else Status.INCONCLUSIVE
    return verdict.status
