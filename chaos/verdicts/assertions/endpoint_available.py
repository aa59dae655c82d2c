"""Assertion ``endpoint-available``: an endpoint is available within an error budget."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from chaos.core.assertion import Claim, Names, Noun, Undecidable, View, format_seconds
from chaos.core.duration import format_duration, parse_duration
from chaos.core.field_types import DurationText, Model
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import ProbeSample
from chaos.core.verdict import ValueLimit
from chaos.verdicts.judge.signals import mask, since_effect

_STALE_AFTER_INTERVALS = 3  # answers, by the usual pause between two; what an answer says is not good for longer
_MIN_STALE_AFTER = 5.0  # seconds


def _check_budget(text: str) -> str:
    if text.endswith("%"):
        try:
            percent = float(text[:-1])
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= 100:
            raise ValueError(f"invalid percentage {text!r}: write it like 0.1%")
        return text
    parse_duration(text)
    return text


class Params(Model):
    """Probe, and the time for which it may fail."""

    probe: str = Field(description="The name of a probe of the experiment (spec.probes).")
    budget: Annotated[str, AfterValidator(_check_budget)] = Field(
        "0s", description="The total time for which the probe may fail, such as 5s, or 0.1% of over."
    )
    over: DurationText | None = Field(None, description="The time to which a percentage refers.")
    answer_within: DurationText | None = Field(None, alias="answer-within", description="A slower answer is a failure.")

    @model_validator(mode="after")
    def _check_over(self) -> Self:
        if self.budget.endswith("%") is not (self.over is not None):
            raise ValueError("over and a budget in percent need each other")
        return self

    @property
    def seconds(self) -> float:
        """The budget in seconds."""
        if self.over is None:
            return parse_duration(self.budget)
        return parse_duration(self.over) * float(self.budget[:-1]) / 100

    @property
    def limits(self) -> tuple[ValueLimit, ...]:
        """The budget, and the latency above which an answer is a failure."""
        budget = ValueLimit("probe", self.probe, "failing", "at-most", self.seconds)
        if self.answer_within is None:
            return (budget,)
        return budget, ValueLimit("probe", self.probe, "latency", "at-most", parse_duration(self.answer_within))


def _answer_samples(probed: list[ProbeSample], params: Params) -> Iterator[Sample]:
    """Samples of success or failure, valid from each answer until the next; unknown where answers are missing."""
    slow = parse_duration(params.answer_within) if params.answer_within else float("inf")
    intervals = [later.t - earlier.t for earlier, later in pairwise(probed)]
    stale_after = max(_MIN_STALE_AFTER, _STALE_AFTER_INTERVALS * median(intervals)) if intervals else _MIN_STALE_AFTER
    for probe, following in zip(probed, (*(p.t for p in probed[1:]), float("inf")), strict=True):
        answer = probe.result
        text = answer.error or (f"status {answer.status}" if answer.status else "failed")
        if answer.ok and answer.seconds > slow:
            text = f"answered after {answer.seconds:.1f} s"
        ok = answer.ok and answer.seconds <= slow
        yield Sample(probe.t, ok, probe.seq, "answered" if ok else text)
        if probe.t + stale_after < following:
            yield Sample(probe.t + stale_after, None, probe.seq, "not probed any longer")


def _budget_samples(answers: Signal, budget: float, start: float, end: float) -> Iterator[Sample]:
    """Samples that are true until the budget is exhausted; unknown from the moment at which it may be."""
    failed, unknown = 0.0, 0.0
    uncertain = False
    yield Sample(float("-inf"), True, None, "no failure")
    for span in answers.spans(start, end):
        length, value = span.end - span.start, span.sample.value
        if value is True:
            continue
        remaining = budget - failed
        if value is False and length > remaining:
            text = f"failed for {format_duration(budget)} and continued to fail: {span.sample.observation}"
            yield Sample(span.start + max(remaining, 0.0), False, span.sample.seq, text)
            return
        if not uncertain and length > remaining - unknown:
            uncertain = True
            text = f"failed for {failed:.1f} s, and perhaps longer: {span.sample.observation}"
            yield Sample(span.start + max(remaining - unknown, 0.0), None, span.sample.seq, text)
        failed, unknown = failed + length * (value is False), unknown + length * (value is None)
        if not uncertain:
            yield Sample(span.end, True, span.sample.seq, f"failed for {failed:.1f} s in total")


class EndpointAvailable:
    """The total time for which a probe failed since judging starts is within the budget. Use it with ``always``.

    Each answer is valid until the next answer. The endpoint may have failed at any time without probes, so the result
    is unknown if the budget does not cover that time.
    """

    name = "endpoint-available"
    summary = "an endpoint is available within an error budget in seconds or percent"
    example = (
        "{assert: endpoint-available, with: {probe: shop, budget: 1%, over: 5m}, after: power-off, always: {for: 5m}}"
    )
    needs = "the answers of the probe, without gaps longer than the budget"
    params = Params
    node_fields = ()
    moment_fields = ()
    masks_itself = True

    def claim(self, params: Params, _names: Names) -> Claim:
        probe = Noun(f"probe {params.probe}")
        if not params.seconds:
            return probe.claim("did not fail", "failed")
        limit = format_seconds(params.seconds)
        return probe.claim(f"kept its error budget of {limit}", f"exceeded its error budget of {limit}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        probed = view.timeline.probes.get(params.probe, [])
        if not probed:
            raise Undecidable(f"the probe {params.probe} has no answer")
        answers = mask(Signal(tuple(_answer_samples(probed, params))), view.timeline, f"probe@{params.probe}")
        end = view.timeline.end
        signal = since_effect(view, lambda t: Signal(tuple(_budget_samples(answers, params.seconds, t, end))))
        limit = format_duration(params.seconds)
        expected = f"{params.probe} fails for at most {limit} in total"
        return SubjectSet(expected, (Subject("", signal),), limits=params.limits)


ASSERTION = EndpointAvailable()
