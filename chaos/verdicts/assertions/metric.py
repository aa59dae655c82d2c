"""Assertion ``metric``: the value of a metric or query is within bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from chaos.core.assertion import Claim, Names, Undecidable, View
from chaos.core.field_types import Flag, Model
from chaos.core.indexes import METRIC_PREFIXES
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import QuerySample, Scrape
from chaos.core.verdict import ValueLimit
from chaos.verdicts.assertions._replicas import ReplicaSample, growth, increase_since, leader_samples, replicas
from chaos.verdicts.judge.signals import mask, since_effect

_ABSENT = Sample(float("-inf"), None, None, "not read yet")
Labels = tuple[tuple[str, str], ...]


class Params(Model):
    """Metric of kubelets or of the controller-manager, or query to Prometheus, and the bounds of the value."""

    ONE_OF = ("name", "query")

    node: str | None = Field(None, description="A target, or all. The metric of its kubelets is read.")
    controller_manager: Flag = Field(
        False,
        alias="controller-manager",
        description="Read the metric of the controller manager of the inventory's cluster.",
    )
    name: str | None = Field(None, description="The metric as exposed, including its labels.")
    query: str | None = Field(None, description="The name of a query of the experiment (spec.queries).")
    labels: dict[str, str] = Field({}, description="Only series of the query with these labels.")
    at_least: float | None = Field(None, alias="at-least")
    at_most: float | None = Field(None, alias="at-most")
    increase: Flag = Field(False, description="Compare the increase of a counter since judging starts.")
    series: Literal["each", "any", "none"] = "each"

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if (self.node is not None) + self.controller_manager != (self.name is not None):
            raise ValueError("name takes node, for a kubelet's metric, or controller-manager: true; query neither")
        if self.controller_manager and not (self.name or "").startswith(METRIC_PREFIXES):
            known = ", ".join(name.partition("{")[0] for name in METRIC_PREFIXES)
            raise ValueError(f"not a recorded metric of the controller-manager: use one of {known}, with its labels")
        if self.at_least is None and self.at_most is None and (self.name or self.increase):
            raise ValueError("give at-least, at-most or both")
        if self.labels and self.name:
            raise ValueError("labels select series of a query: include them in name instead")
        return self

    @property
    def has_bounds(self) -> bool:
        """Whether there are bounds of the value; otherwise any series suffices."""
        return self.at_least is not None or self.at_most is not None

    @property
    def limits(self) -> tuple[ValueLimit, ...]:
        """The bounds of the value, or of its increase; infinity bounds nothing, and JSON has neither it nor NaN."""
        source, measure = "query" if self.query else "metric", "increase" if self.increase else "value"
        name = self.query or self.name or ""
        return tuple(
            ValueLimit(source, name, measure, operator, value, self.labels)
            for operator, value in (("at-least", self.at_least), ("at-most", self.at_most))
            if value is not None and math.isfinite(value)
        )

    def describe(self) -> str:
        """Describe the expectation."""
        subject = (self.name or f"query {self.query}") + (" increases" if self.increase else "")
        limits = (("at least", self.at_least), ("at most", self.at_most))
        bounds = " and ".join(f"{word} {bound:g}" for word, bound in limits if bound is not None)
        return f"{subject}: {bounds or 'has a result'}"


def _kubelet_samples(scrapes: list[Scrape], params: Params) -> Iterator[ReplicaSample]:
    """Samples of one metric. A counter that only appears later was 0 before."""
    name = params.name or ""
    ever = any(name in scrape.values for scrape in scrapes)
    for scrape in scrapes:
        if scrape.status != 200:
            yield scrape.t, scrape.seq, None, "reading the metrics of the kubelet failed"
        elif name in scrape.values:
            yield scrape.t, scrape.seq, scrape.values[name], ""
        else:
            yield scrape.t, scrape.seq, 0.0 if ever and params.increase else None, "the kubelet has no such metric"


def _series(answers: list[QuerySample], params: Params) -> dict[Labels, list[ReplicaSample]]:
    """Samples of each series of a query that has the labels, in order of time.

    In an instant answer, a missing series has no value; a range answer over the whole run only adds values.
    """
    series: dict[Labels, dict[float, ReplicaSample]] = {}
    moments: dict[float, int] = {}
    for answer in answers:
        times = {t for one in answer.result.series for t, _ in one.values}
        if len(times) <= 1:
            moments[next(iter(times), answer.t)] = answer.seq
        for one in answer.result.series:
            if all(one.labels.get(key) == value for key, value in params.labels.items()):
                own = series.setdefault(tuple(sorted(one.labels.items())), {})
                for t, value in one.values:
                    own.setdefault(t, (t, answer.seq, value, "its value is not a number"))
    for own in series.values():
        for t, seq in moments.items():
            own.setdefault(t, (t, seq, None, "the query no longer has such a series"))
    return {labels: [own[t] for t in sorted(own)] for labels, own in series.items()}


def _increase(readings: list[ReplicaSample], anchor: float) -> Iterator[ReplicaSample]:
    """Increase of a counter since the anchor; a counter that fell was reset."""
    total, last = 0.0, None
    before = next((r for r in reversed(readings) if r[0] <= anchor and r[2] is not None), None)
    if before:
        last = before[2]
        yield anchor, before[1], 0.0, ""
    for t, seq, value, reason in readings:
        if t <= anchor:
            continue
        if value is not None:
            if last is not None:
                total += growth(last, value)
            last = value
        yield t, seq, None if value is None else total, reason


def _signal(readings: Iterable[ReplicaSample], params: Params) -> Signal:
    """Signal of whether the value, or its increase, is within the bounds."""
    samples = [_ABSENT]
    least = float("-inf") if params.at_least is None else params.at_least
    most = float("inf") if params.at_most is None else params.at_most
    for t, seq, value, reason in readings:
        text = reason if value is None else f"{'increased by' if params.increase else 'value'} {value:g}"
        samples.append(Sample(t, None if value is None else least <= value <= most, seq, text))
    return Signal(tuple(samples))


def _value_or_increase(readings: list[ReplicaSample], params: Params, view: View) -> Signal:
    if not params.increase:
        return _signal(readings, params)
    return since_effect(view, lambda t: _signal(_increase(readings, t), params))


def _controller_manager_subject(params: Params, view: View) -> Subject:
    """Subject for the controller-manager. Raises Undecidable."""
    scrapes, name = replicas(view.timeline), params.name or ""
    if not scrapes:
        raise Undecidable("the metrics of the controller-manager were never read")
    if params.increase:
        signal = since_effect(view, lambda t: _signal(increase_since(scrapes, name, t), params))
    else:
        signal = _signal(leader_samples(scrapes, name), params)
    return Subject("kube-controller-manager", mask(signal, view.timeline, *(f"metrics@{url}" for url in scrapes)))


def _result_signal(answers: list[QuerySample], params: Params) -> Signal:
    """Signal of whether the query has any series with the labels, from the instant answers."""
    samples = [_ABSENT]
    for answer in answers:
        series = answer.result.series
        if all(len(one.values) <= 1 for one in series):
            matching = [s for s in series if all(s.labels.get(key) == value for key, value in params.labels.items())]
            example = f", like {_format_labels(tuple(sorted(matching[0].labels.items())))}" if matching else ""
            samples.append(Sample(answer.t, bool(matching), answer.seq, f"{len(matching)} series{example}"))
    return Signal(tuple(samples))


def _format_labels(labels: Labels) -> str:
    return "{" + ", ".join(f'{key}="{value}"' for key, value in labels) + "}"


def _predicates(params: Params) -> tuple[str, str]:
    """Predicates for people: that the value is within the bounds, and that it is not."""
    least, most = params.at_least, params.at_most
    verb = "increased by" if params.increase else "was"
    if least is not None and most is not None:
        return f"{verb} {least:g} to {most:g}", f"{verb} less than {least:g} or more than {most:g}"
    if params.increase and most == 0:
        return "did not increase", "increased"
    if most is not None:
        return f"{verb} at most {most:g}", f"{verb} more than {most:g}"
    if least is not None:
        return f"{verb} at least {least:g}", f"{verb} less than {least:g}"
    return "had a result", "had no result"


class Metric:
    """The value of a metric of kubelets or of the controller-manager, or of a query to Prometheus, is within bounds.

    Each value is valid until the next value. ``increase`` starts with the last value before judging, and continues
    after a reset of the counter. A query without bounds only needs to have a result. A run records the metrics
    ``kubelet_graceful_shutdown_*`` and ``kubelet_admission_rejections_total`` of kubelets. The value of the leader
    counts for the controller-manager, while ``increase`` is the sum over all replicas.
    """

    name = "metric"
    summary = "a metric of a kubelet or the controller-manager, or a query to Prometheus, is within bounds"
    example = "{assert: metric, with: {query: errors, at-most: 0.01}, after: power-off, always: {for: 2m}}"
    needs = "repeated readings of the metric during that time, from its endpoint or from Prometheus"
    params = Params
    node_fields = ("node",)
    moment_fields = ()
    masks_itself = True

    def uses_controller_manager(self, params: Params) -> bool:
        """Whether the parameters name a metric of the controller-manager."""
        return params.controller_manager

    def claim(self, params: Params, names: Names) -> Claim:
        where = f" of {names.nodes(params.node)}" if params.node else ""
        subject = f"metric {params.name}{where}" if params.name else f"query {params.query!r}"
        holds, fails = _predicates(params)
        if params.query and params.series != "each":
            one, none = f"a series of {subject} {holds}", f"no series of {subject} {holds}"
            return Claim(none, one) if params.series == "none" else Claim(one, none)
        if not params.query and params.series == "none":
            holds, fails = fails, holds
        return Claim(f"{subject} {holds}", f"{subject} {fails}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline, quantifier = view.timeline, Quantifier(params.series)
        if params.node:
            subjects = []
            for node in view.nodes(params.node):
                samples = list(_kubelet_samples(timeline.metrics.get(node, []), params))
                signal = _value_or_increase(samples, params, view)
                subjects.append(Subject(node, mask(signal, timeline, f"metrics@{node}")))
            empty_reason = "no node was observed"
            return SubjectSet(
                params.describe(), tuple(subjects), quantifier, empty_reason=empty_reason, limits=params.limits
            )
        if params.controller_manager:
            subject = _controller_manager_subject(params, view)
            return SubjectSet(params.describe(), (subject,), quantifier, limits=params.limits)
        answers = timeline.prometheus.get(params.query or "", [])
        if not answers:
            raise Undecidable(f"the query {params.query} has no answer")
        if not params.has_bounds:
            subject = Subject("", mask(_result_signal(answers, params), timeline, "prometheus"))
            return SubjectSet(params.describe(), (subject,), quantifier)
        subjects = [
            Subject(_format_labels(labels), mask(_value_or_increase(readings, params, view), timeline, "prometheus"))
            for labels, readings in sorted(_series(answers, params).items())
        ]
        empty_reason = "the query had no such series"
        return SubjectSet(
            params.describe(), tuple(subjects), quantifier, empty_reason=empty_reason, limits=params.limits
        )


ASSERTION = Metric()
