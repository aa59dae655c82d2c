"""Verdict on one expectation: held, violated, inconclusive, or pending while a run is live."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from msgspec import structs

from chaos.core.assertion import NothingToJudge, NotYetDecidable, Undecidable
from chaos.core.duration import Bound, format_duration
from chaos.core.experiment import Expectation, Until, bound
from chaos.core.signal import Quantifier, Signal, Subject, SubjectSet
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext, Scope
from chaos.verdicts.judge.deadlines import Deadline, extension_of, within_deadline
from chaos.verdicts.judge.decisive import (
    MAX_EVIDENCE,
    Evaluated,
    deciding_moment,
    decisive_subject,
    guard,
    make_verdict,
)
from chaos.verdicts.judge.effects import Reading, anchor_after, end_before, exact_anchor, over_effects
from chaos.verdicts.judge.facts import Facts
from chaos.verdicts.judge.nearest import describe_nearest, phrase_held
from chaos.verdicts.judge.ordering import judge_order
from chaos.verdicts.judge.quantifiers import any_of_each, combine, decide_statuses, is_behind
from chaos.verdicts.judge.sentences import format_since, phrase_throughout, phrase_within
from chaos.verdicts.judge.signals import mask_unobserved
from chaos.verdicts.judge.temporal import (
    Answer,
    always,
    negate,
    never,
    pinned,
    proven_end,
    settles,
    value_near,
    was_false,
)

NOTICE_SECONDS = 60.0  # after which the control plane has noticed a silent node, with its usual settings
STEADY_LOOKBACK = 30.0  # seconds for which a known state is taken for that of now
_RECOVERY_LOOKBACK = 0.001  # seconds: lists suffice, as an object that came and went is not missed afterwards


def evaluate(expectation: Expectation, context: JudgeContext, horizon: float, *, from_begin: bool = False) -> Verdict:
    """Judge one hypothesis on the entries up to ``horizon``; an abort condition counts ``from_begin``. Never raises."""
    expectation = expectation.continuous() if from_begin else expectation

    def judge(reading: Reading) -> Verdict:
        evaluation = _Evaluation(expectation, context, horizon, reading=None if from_begin else reading)
        return guard(expectation, context, horizon, evaluation.verdict)

    return over_effects(expectation, context, judge, from_begin=from_begin)


def evaluate_since(expectation: Expectation, context: JudgeContext, start: float, horizon: float) -> Verdict:
    """Judge an abort condition from ``start`` on, whatever steps there are. Never raises."""
    evaluation = _Evaluation(expectation.continuous(), context, horizon, start)
    evaluation.label = "the start of the watch"
    return guard(expectation, context, horizon, evaluation.verdict)


def evaluate_at(expectation: Expectation, context: JudgeContext, t: float) -> Verdict:
    """Judge an expectation of the steady state at one moment, or shortly before if only that is known. Never raises."""
    evaluation = _Evaluation(expectation, context, t, t, STEADY_LOOKBACK)
    return guard(expectation, context, t, evaluation.at_moment)


def evaluate_recovery(
    expectation: Expectation, context: JudgeContext, start: float, deadline: float, horizon: float
) -> Verdict:
    """Judge whether an expectation is true again by ``deadline`` and stays true, from ``start`` on. Never raises."""
    evaluation = _Evaluation(expectation, context, horizon, start, _RECOVERY_LOOKBACK)
    return guard(expectation, context, horizon, lambda: evaluation.recovery_verdict(deadline))


@dataclass
class _Evaluation:
    """Evaluation of one expectation up to ``horizon``; ``anchor_at`` overrides the moment at which judging starts.

    ``reading``: of the effect of steps; None: they count from their start.
    """

    expectation: Expectation
    context: JudgeContext
    horizon: float
    anchor_at: float | None = None
    lookback: float = 0.0
    reading: Reading | None = None

    def __post_init__(self) -> None:
        self.context.registry.bind_expectation(self.expectation)  # unless it is bound: it may be from elsewhere
        self.label = self.expectation.after or self.context.experiment.spec.method[0].name

    def verdict(self) -> Verdict:
        """Evaluate the expectation with its time words. Raises Undecidable."""
        if self.expectation.order:
            return judge_order(self.expectation, self.context, self.horizon, self.order_inputs)
        self._prepare()
        verdict = self._with_time_words()
        is_open = verdict.status is Status.INCONCLUSIVE and is_behind(self.subjects, verdict.deadline)
        return replace(verdict, status=Status.PENDING) if is_open else verdict

    def _with_time_words(self) -> Verdict:
        if self.expectation.within is not None:
            return self._within(bound(self.expectation.within))
        if self.expectation.never is not None:
            return self._throughout(self.expectation.never, "never")
        if self.expectation.always is not None:
            return self._throughout(self.expectation.always, "always")
        raise Undecidable("the expectation has no deadline", "within, never or always")

    def order_inputs(self, expectation: Expectation, reading: Reading) -> tuple[Signal, float, float]:
        """Signal, begin and deadline of a hypothesis in an ``order``, in one reading. Raises Undecidable."""
        other = _Evaluation(expectation, self.context, self.horizon, reading=reading)
        if expectation.within is None:
            raise Undecidable(f"{expectation.title!r} has no deadline", f"within for {expectation.title!r}")
        other._prepare()
        time = bound(expectation.within)
        deadline = math.inf if time.per_pod else other._deadline(time).at
        return other._signal(other.subjects), other.anchor, deadline

    def at_moment(self) -> Verdict:
        """Evaluate at the anchor, without time words. Raises Undecidable."""
        self._prepare()
        sample = value_near(combine(self.subjects), self.anchor, self.lookback)
        status = {True: Status.HELD, False: Status.VIOLATED, None: Status.INCONCLUSIVE}[sample.value]
        answer = Answer(status, self.anchor, sample)
        return self._make_verdict(answer, sample.observation, self.subjects.expected, self.anchor)

    def recovery_verdict(self, deadline: float) -> Verdict:
        """Evaluate whether it is true from some moment until the deadline or the horizon. Raises Undecidable."""
        self.label = "the last step"
        self._prepare()
        signal = combine(self.subjects)
        answer = settles(signal, self.anchor, deadline, self.horizon)
        if answer.status is Status.HELD and self.context.live and not self._may_have_recovered(signal, deadline):
            answer = replace(answer, status=Status.PENDING)
        at = max(answer.at, self.anchor) if answer.status is Status.HELD else deadline
        ends_early = ", and the recording ends before" if answer.status is Status.PENDING else ","
        because = f"{answer.sample.observation}{ends_early} {format_since(at, self.anchor, self.label)}"
        expected = f"{self.subjects.expected}, again within {format_duration(deadline - self.anchor)}"
        return replace(self._make_verdict(answer, because, expected, deadline), operator="within")

    def _may_have_recovered(self, signal: Signal, deadline: float) -> bool:
        """Whether the fault was noticed, or would have been by now: before that, nothing was lost to be regained."""
        is_over = self.horizon >= min(deadline, self.anchor + NOTICE_SECONDS)
        return is_over or was_false(signal, self.context.start, self.horizon)

    def _prepare(self) -> None:
        """Set anchor, facts and subjects. Raises Undecidable."""
        context, question = self.context, self.expectation.bound
        if question is None:
            raise Undecidable(f"unknown assertion {self.expectation.assert_!r}")
        given = None if self.anchor_at is None else exact_anchor(self.anchor_at)
        anchor = given or anchor_after(context, self.label, self.reading)
        self.anchor, self.origin, self.pins = anchor.start, anchor.origin, [anchor.pin] if anchor.pin else []
        assertion, params = question.assertion, question.params
        since = (anchor.since.earliest, anchor.since.latest)
        scope = Scope(context, anchor.begin, self.lookback, (assertion.name, repr(params)), since)
        self.facts = Facts(context, scope.nodes_of(assertion, params), anchor.begin)
        self.extension = extension_of(self.expectation, context)
        self.subjects = mask_unobserved(assertion.subjects(params, scope), assertion, context.timeline)
        if not self.subjects.subjects and self.subjects.quantifier is not Quantifier.COUNT:
            raise NothingToJudge(self.subjects.empty_reason)

    def _signal(self, subjects: SubjectSet) -> Signal:
        """The combination of all subjects, with the moments that the expectation names where this reading has them."""
        return pinned(combine(subjects), ((pin.order, pin.at) for pin in self.pins))

    def _within(self, time: Bound) -> Verdict:
        hold = self._seconds(bound(self.expectation.for_)) if self.expectation.for_ else 0.0
        if time.per_pod:
            return self._per_subject(
                time, lambda s, start, end: within_deadline(s, start, end, hold, self.horizon), hold
            )
        deadline = self._deadline(time)
        self.context.deadlines.add(deadline.at)
        answer = within_deadline(self._signal(self.subjects), self.anchor, deadline, hold, self.horizon)
        because = phrase_within(answer, self.anchor, self.label, deadline.at, hold)
        because += describe_nearest(self.subjects, answer, self.anchor, deadline.at, self.label, self.context.live)
        stays = f", for {format_duration(hold)}" if hold else ""
        seconds = format_duration(deadline.at - self.origin)
        expected = f"{self.subjects.expected} within {seconds} of {self.label}{stays}{self.extension.reason(time)}"
        end = deciding_moment(answer.status, deadline.at, hold)
        return self._make_verdict(answer, because, expected, end, deadline.at - self.origin)

    def _throughout(self, until: Until | bool, word: str) -> Verdict:
        judge = never if word == "never" else always
        if isinstance(until, Until) and until.for_ and (time := bound(until.for_)).per_pod:
            return self._per_subject(time, lambda signal, start, end: judge(signal, start, end.at, self.horizon))
        end, end_text = self._end(until)
        is_duration = isinstance(until, Until) and until.for_
        if end < min(self.anchor, self.origin):
            why = f"the end is {self.anchor - end:.1f} s before the beginning"
            raise Undecidable(why, "an end after the beginning")
        signal = self._signal(any_of_each(self.subjects) if word == "never" else self.subjects)
        end = end if isinstance(until, Until) else proven_end(signal, end)
        answer = judge(signal, self.anchor, end, self.horizon)
        if answer.status is Status.HELD:
            because = phrase_held(self.subjects, signal, word, self.anchor, end, self.label)
        else:
            because = phrase_throughout(answer, self.anchor, self.label, end)
        expected = f"{word}, from {self.label} {end_text}: {self.subjects.expected}"
        return self._make_verdict(answer, because, expected, end, end - self.origin if is_duration else None)

    def _end(self, until: Until | bool) -> tuple[float, str]:
        """End of a never or always and its description; infinite, live, until a step that has not begun."""
        if not isinstance(until, Until):
            return (math.inf if self.context.live else self.horizon), "to the end of the run"
        if until.until is None:
            seconds = self._seconds(bound(until.for_ or "0s"))
            return self.origin + seconds, f"for {format_duration(seconds)}"
        try:
            end, pin = end_before(self.context, until.until, self.reading)
        except NotYetDecidable:
            if not self.context.live:
                raise
            end, pin = math.inf, None
        self.pins += [pin] if pin else []
        return end, f"until {until.until}"

    def _per_subject(self, time: Bound, judge: Any, hold: float = 0.0) -> Verdict:
        """Evaluate each subject with a separate deadline; the reason is about the decisive subject."""
        subjects = self.subjects.one_by_one()
        if subjects.quantifier is Quantifier.NONE:
            negated = tuple(structs.replace(s, signal=negate(s.signal)) for s in subjects.subjects)
            subjects = replace(subjects, subjects=negated, quantifier=Quantifier.EACH)
        evaluated = [(s, *self._evaluate_subject(s, time, judge)) for s in subjects.subjects]
        if subjects.quantifier is Quantifier.COUNT and self.anchor != self.origin:
            evaluated = list(self._with_both_readings(evaluated, time, judge))
        status = decide_statuses(subjects, [answer.status for _, answer, _ in evaluated])
        decisive = decisive_subject(evaluated, status, self.subjects.quantifier)
        expected = f"{subjects.expected} {'within' if self.expectation.within else 'for'} {time.text} of {self.label}"
        expected += self.extension.reason(time)
        if decisive is None:
            empty = Answer(status, self.anchor, combine(subjects).at(self.anchor))
            return self._make_verdict(empty, "none", expected, None)
        subject, answer, deadline = decisive
        if deadline is None:
            because = f"{subject.name}: {self._describe_unknown()}"
            return self._make_verdict(replace(answer, status=status), because, expected, None)
        phrased = phrase_throughout if self.expectation.within is None else phrase_within
        phrase = phrased(answer, self.anchor, self.label, deadline)
        same = sum(1 for _, other, _ in evaluated if other.status is answer.status)
        count = f" ({same} of {len(evaluated)})" if len(evaluated) > 1 else ""
        last_deadline = deciding_moment(status, max(d or 0.0 for _, _, d in evaluated), hold)
        because, bound = f"{subject.name}: {phrase}{count}", deadline - self.origin
        verdict = self._make_verdict(answer, because, expected, last_deadline, bound)
        is_each = status is Status.VIOLATED and subjects.quantifier is Quantifier.EACH
        names = tuple(s.name for s, other, _ in evaluated if is_each and other.status is status)
        return replace(verdict, status=status, subjects=names[:MAX_EVIDENCE])

    def _evaluate_subject(self, subject: Subject, time: Bound, judge: Any) -> tuple[Answer, float | None]:
        seconds = partial(self.facts.subject_seconds, own=subject.facts)
        deadline = self.extension.deadline(self.origin, time, seconds)
        if deadline is None:
            return Answer(Status.INCONCLUSIVE, self.anchor, subject.signal.at(self.anchor)), None
        self.context.deadlines.update((deadline.written, deadline.at))
        return judge(subject.signal, self.anchor, deadline), deadline.at

    def _with_both_readings(self, evaluated: Sequence[Evaluated], time: Bound, judge: Any) -> Iterator[Evaluated]:
        """The subjects, undecided if the readings differ: two numbers that are wrong may have a right one between."""
        other = replace(self, reading=Reading.LONGEST if self.reading is Reading.SHORTEST else Reading.SHORTEST)
        other._prepare()
        for (subject, answer, deadline), same in zip(evaluated, other.subjects.one_by_one().subjects, strict=True):
            status = other._evaluate_subject(same, time, judge)[0].status
            differs = Status.PENDING if Status.PENDING in (status, answer.status) else Status.INCONCLUSIVE
            yield subject, answer if status is answer.status else replace(answer, status=differs), deadline

    def _deadline(self, time: Bound) -> Deadline:
        deadline = self.extension.deadline(self.origin, time, self._seconds)
        assert deadline is not None  # noqa: S101 - an unknown fact raises
        return deadline

    def _seconds(self, time: Bound) -> float:
        value = self.facts.seconds(time)
        if value is None:
            names = " ".join(f"--fact {name}=VALUE" for name in self.facts.unknown)
            raise Undecidable(f"the bound {time.text!r} is unknown: {self._describe_unknown()}", names)
        return value

    def _describe_unknown(self) -> str:
        return "; ".join(f"{name}: {reason}" for name, reason in self.facts.unknown.items())

    def _make_verdict(
        self, answer: Answer, because: str, expected: str, deadline: float | None, bound: float | None = None
    ) -> Verdict:
        """The verdict. ``bound``: the time that the expectation gives, in seconds, if there is one."""
        self.context.deadlines.update((self.anchor, self.anchor if deadline is None else deadline))
        verdict = make_verdict(self.expectation, self.subjects, answer, self.facts.assumed)
        end = deadline if deadline is not None and math.isfinite(deadline) else None
        return replace(verdict, because=because, expected=expected, start=self.anchor, deadline=end, bound=bound)
