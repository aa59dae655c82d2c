"""Assertion ``endpoint-available``: an endpoint is available within an error budget, or answers well enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Annotated, Self

from msgspec import structs
from pydantic import AfterValidator, Field, model_validator

from chaos.core.assertion import Claim, Names, Noun, Undecidable, View, format_seconds
from chaos.core.duration import format_duration, parse_duration
from chaos.core.field_types import DurationText, Model
from chaos.core.recording import ProbeResult
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import ProbeSample
from chaos.core.verdict import ValueLimit
from chaos.verdicts.judge.signals import mask, since_effect

_STALE_AFTER_INTERVALS = 3  # answers, by the usual pause between two; what an answer says is not good for longer
_MIN_STALE_AFTER = 5.0  # seconds
_LAST_REQUEST = 1.5  # usual pauses for which the last request counts


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


def _check_share(text: str) -> str:
    if not text.endswith("%"):
        raise ValueError(f"invalid share {text!r}: write it like 99.9%")
    return _check_budget(text)


Share = Annotated[str, AfterValidator(_check_share)]
_PERCENTILES = {"p50_below": 50, "p90_below": 90, "p95_below": 95, "p99_below": 99}


@dataclass(frozen=True, slots=True)
class _Requirement:
    """For how many ``seconds`` the endpoint may fail to give a good answer, of how many answers at ``least``."""

    name: str
    seconds: float
    is_good: Callable[[ProbeResult], bool]
    least: int = 0


class Params(Model):
    """The probe, and how long it may fail or how well it must answer."""

    probe: str = Field(description="The name of a probe of the experiment (spec.probes).")
    budget: Annotated[str, AfterValidator(_check_budget)] = Field(
        "0s", description="The total time for which the probe may fail, such as 5s, or 0.1% of over."
    )
    over: DurationText | None = Field(None, description="The time to which percentages and percentiles refer.")
    answer_within: DurationText | None = Field(None, alias="answer-within", description="A slower answer is a failure.")
    success_at_least: Share | None = Field(
        None, alias="success-at-least", description="The share of over in which requests succeed, such as 99.9%."
    )
    p50_below: DurationText | None = Field(None, alias="p50-below", description="The median of the latency.")
    p90_below: DurationText | None = Field(None, alias="p90-below", description="The 90th percentile of the latency.")
    p95_below: DurationText | None = Field(None, alias="p95-below", description="The 95th percentile of the latency.")
    p99_below: DurationText | None = Field(None, alias="p99-below", description="The 99th percentile of the latency.")

    @model_validator(mode="after")
    def _check_over(self) -> Self:
        shares = self.model_fields_set & {"success_at_least", *_PERCENTILES}
        if shares and "budget" in self.model_fields_set:
            raise ValueError("give a budget, or success-at-least and percentiles")
        if (self.budget.endswith("%") or bool(shares)) is not (self.over is not None):
            raise ValueError("over and a share (budget in percent, success-at-least, a percentile) need each other")
        return self

    @property
    def requirements(self) -> tuple[_Requirement, ...]:
        """The budget, or the shares instead of it."""
        slow = parse_duration(self.answer_within) if self.answer_within else math.inf
        over, found = parse_duration(self.over) if self.over else 0.0, list[_Requirement]()

        def answers_in_time(answer: ProbeResult) -> bool:
            return answer.ok and answer.seconds <= slow

        if self.success_at_least is not None:
            failing = over * (1 - float(self.success_at_least[:-1]) / 100)
            found.append(_Requirement(f"a success share of at least {self.success_at_least}", failing, answers_in_time))
        for field, percent in _PERCENTILES.items():
            if text := getattr(self, field):
                found.append(_percentile(percent, text, over))
        if found:
            return tuple(found)
        seconds = over * float(self.budget[:-1]) / 100 if self.over else parse_duration(self.budget)
        return (_Requirement("", seconds, answers_in_time),)

    @property
    def limits(self) -> tuple[ValueLimit, ...]:
        """The time of failures, and the latencies above which an answer is a failure."""
        latencies = [text for text in (self.answer_within, *(getattr(self, field) for field in _PERCENTILES)) if text]
        failing = [each.seconds for each in self.requirements if not each.least]
        return (
            *(ValueLimit("probe", self.probe, "failing", "at-most", seconds) for seconds in failing),
            *(ValueLimit("probe", self.probe, "latency", "at-most", parse_duration(text)) for text in latencies),
        )


def _percentile(percent: int, text: str, over: float) -> _Requirement:
    """Answers that fail or are not below the limit may take the other share; a hundredth needs a hundred answers."""
    limit = parse_duration(text)
    share = (100 - percent) / 100
    name = f"a p{percent} below {format_duration(limit)}"
    return _Requirement(name, over * share, lambda answer: answer.ok and answer.seconds < limit, math.ceil(1 / share))


def _answer_samples(probed: list[ProbeSample], requirement: _Requirement) -> Iterator[Sample]:
    """Samples of success or failure; unknown where answers are missing.

    For a budget, an answer is valid from its receipt until the next one. For a share, a request counts from its sending
    until the next one is sent, so that a slow answer weighs as much as the quick ones that it delays.
    """
    begins = list(_begins(probed, by_request=bool(requirement.name)))
    intervals = [later - earlier for earlier, later in pairwise(begins)]
    usual = median(intervals) if intervals else _MIN_STALE_AFTER
    stale_after = max(_MIN_STALE_AFTER, _STALE_AFTER_INTERVALS * usual)
    for probe, begin, following in zip(probed, begins, (*begins[1:], math.inf), strict=True):
        answer, ok = probe.result, requirement.is_good(probe.result)
        text = answer.error or (f"status {answer.status}" if answer.status else "failed")
        if answer.ok and not ok:
            text = f"answered after {answer.seconds:.1f} s"
        yield Sample(begin, ok, probe.seq, "answered" if ok else text)
        end = probe.t + stale_after
        if requirement.name and following == math.inf:  # the next request may be in flight
            end = max(probe.t, begin + usual * _LAST_REQUEST)
        if end < following:
            yield Sample(end, None, probe.seq, "not probed any longer")


def _begins(probed: list[ProbeSample], *, by_request: bool) -> Iterator[float]:
    """The time from which each answer counts."""
    begin = -math.inf
    for probe in probed:
        begin = max(begin, probe.t - probe.result.seconds) if by_request else probe.t
        yield begin


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


def _unless_too_few(signal: Signal, requirement: _Requirement, number: int) -> Signal:
    """The signal, unknown instead of true if there are too few answers."""
    if number >= requirement.least:
        return signal
    text = f"{number} answers are too few: {requirement.name} needs {requirement.least}"
    return Signal(
        tuple(structs.replace(s, value=None, observation=text) if s.value is True else s for s in signal.samples)
    )


class EndpointAvailable:
    """The total time for which a probe failed since judging starts is within the budget. Use it with ``always``.

    Each answer is valid until the next answer. The endpoint may have failed at any time without probes, so the result
    is unknown if the budget does not cover that time.

    ``success-at-least: 99.9%`` and ``p95-below: 300ms`` are shares of ``over``: requests may fail for 0.1% of it, and
    fail or be slower for 5% of it. A request counts from its sending until the next one is sent, so a slow answer
    weighs as much as the quick ones that it delays. A percentile needs 2 (p50), 10, 20 or 100 (p99) requests, or the
    result is unknown. They need ``always`` with a ``for`` of at least ``over``.
    """

    name = "endpoint-available"
    summary = "an endpoint is available within an error budget, or answers often and quickly enough"
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
        (first, *others) = params.requirements
        if first.name:
            wanted = " and ".join(each.name for each in (first, *others))
            return probe.claim(f"had {wanted}", f"did not have {wanted}")
        if not first.seconds:
            return probe.claim("did not fail", "failed")
        limit = format_seconds(first.seconds)
        return probe.claim(f"kept its error budget of {limit}", f"exceeded its error budget of {limit}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        probed = view.timeline.probes.get(params.probe, [])
        if not probed:
            raise Undecidable(f"the probe {params.probe} has no answer")
        requirements = params.requirements
        expected = f"{params.probe} fails for at most {format_duration(requirements[0].seconds)} in total"
        if requirements[0].name:
            expected = (
                f"{params.probe} answers with {', '.join(each.name for each in requirements)}, over {params.over}"
            )
        subjects = tuple(Subject(each.name, _signal(each, params, view, probed)) for each in requirements)
        return SubjectSet(expected, subjects, limits=params.limits)


def _signal(requirement: _Requirement, params: Params, view: View, probed: list[ProbeSample]) -> Signal:
    answers = Signal(tuple(_answer_samples(probed, requirement)))
    answers = mask(answers, view.timeline, f"probe@{params.probe}")

    def since(t: float) -> Signal:
        end = view.timeline.end
        if requirement.name and params.over:
            end = min(end, t + parse_duration(params.over))
        allowed = Signal(tuple(_budget_samples(answers, requirement.seconds, t, end)))
        sent = (sample.t - sample.result.seconds for sample in probed)
        return _unless_too_few(allowed, requirement, sum(t <= moment < end for moment in sent))

    return since_effect(view, since)


ASSERTION = EndpointAvailable()
