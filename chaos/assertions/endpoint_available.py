"""Did an endpoint answer, but for an error budget?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from chaos.judge.signals import mask
from chaos.model.assertion import Undecidable, View
from chaos.model.duration import format_duration, parse_duration
from chaos.model.experiment import DurationText, Model
from chaos.model.signal import Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import ProbeSample

_STALE_AFTER_INTERVALS = 3  # answers, by the usual pause between two; what an answer says is not good for longer
_MIN_STALE_AFTER = 5.0  # seconds


def _check_budget(text: str) -> str:
    if text.endswith("%"):
        try:
            percent = float(text[:-1])
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= 100:
            raise ValueError(f"{text!r} is not a percentage; write it like 0.1%")
        return text
    parse_duration(text)
    return text


class Params(Model):
    """Which probe, and how long it may fail."""

    probe: str = Field(description="name of a probe of the experiment (spec.probes)")
    budget: Annotated[str, AfterValidator(_check_budget)] = Field(
        "0s", description="how long it may fail in all, as 5s, or as 0.1% of over"
    )
    over: DurationText | None = Field(None, description="the time of which a percentage is taken")
    answer_within: DurationText | None = Field(None, alias="answer-within", description="a slower answer is a failure")

    @model_validator(mode="after")
    def _check_over(self) -> Self:
        if self.budget.endswith("%") is not (self.over is not None):
            raise ValueError("over goes with a budget in percent, and such a budget needs it")
        return self

    @property
    def seconds(self) -> float:
        """The budget in seconds."""
        if self.over is None:
            return parse_duration(self.budget)
        return parse_duration(self.over) * float(self.budget[:-1]) / 100


def _answer_samples(probed: list[ProbeSample], params: Params) -> Iterator[Sample]:
    """Good or bad from each answer until the next; unknown where answers are missing."""
    slow = parse_duration(params.answer_within) if params.answer_within else float("inf")
    pauses = [later.t - one.t for one, later in pairwise(probed)]
    good_for = max(_MIN_STALE_AFTER, _STALE_AFTER_INTERVALS * median(pauses)) if pauses else _MIN_STALE_AFTER
    for one, following in zip(probed, (*(p.t for p in probed[1:]), float("inf")), strict=True):
        answer = one.result
        why = answer.error or (f"status {answer.status}" if answer.status else "it failed")
        if answer.ok and answer.seconds > slow:
            why = f"it took {answer.seconds:.1f}s"
        ok = answer.ok and answer.seconds <= slow
        yield Sample(one.t, ok, one.seq, "it answered" if ok else why)
        if one.t + good_for < following:
            yield Sample(one.t + good_for, None, one.seq, "it was not asked any more")


def _budget_samples(answers: Signal, budget: float, start: float, end: float) -> Iterator[Sample]:
    """True until the budget is spent; unknown from when it may be."""
    failed, unknown, seen = 0.0, 0.0, "it did not fail"
    doubtful = False
    yield Sample(float("-inf"), True, None, seen)
    for span in answers.spans(start, end):
        length, value = span.end - span.start, span.sample.value
        if value is True:
            continue
        room = budget - failed
        if value is False and length > room:
            seen = f"it had failed for {format_duration(budget)} and went on failing: {span.sample.observation}"
            yield Sample(span.start + max(room, 0.0), False, span.sample.seq, seen)
            return
        if not doubtful and length > room - unknown:
            doubtful = True
            seen = f"it failed for {failed:.1f}s, and may have for longer: {span.sample.observation}"
            yield Sample(span.start + max(room - unknown, 0.0), None, span.sample.seq, seen)
        failed, unknown = failed + length * (value is False), unknown + length * (value is None)
        if not doubtful:
            yield Sample(span.end, True, span.sample.seq, f"it failed for {failed:.1f}s in all")


class EndpointAvailable:
    """The time in which a probe failed, added up since judging starts, is within the budget. Ask it with ``always``.

    An answer stands until the next one. A time in which nodefall could not ask counts as one in which it may have
    failed: it makes the answer unknown if the budget would not cover it.
    """

    name = "endpoint-available"
    summary = "an endpoint answered all the time, but for an error budget in seconds or percent"
    example = (
        "{assert: endpoint-available, with: {probe: shop, budget: 1%, over: 5m}, after: power-off, always: {for: 5m}}"
    )
    needs = "the answers of the probe without gaps that are longer than the budget"
    params = Params
    node_fields = ()
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        probed = view.timeline.probes.get(params.probe, [])
        if not probed:
            raise Undecidable(f"the probe {params.probe} was never answered")
        answers = mask(Signal(tuple(_answer_samples(probed, params))), view.timeline, f"probe@{params.probe}")
        signal = Signal(tuple(_budget_samples(answers, params.seconds, view.anchor, view.timeline.end)))
        limit = format_duration(params.seconds)
        return SubjectSet(f"{params.probe} fails for at most {limit} in all", (Subject("", signal),))


ASSERTION = EndpointAvailable()
