"""What do metrics say?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from chaos.assertions._replicas import ReplicaSample, growth, increase_since, leader_samples, replicas
from chaos.judge.signals import mask
from chaos.model.assertion import Undecidable, View
from chaos.model.controller_manager import METRIC_PREFIXES
from chaos.model.experiment import Model
from chaos.model.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import QuerySample, Scrape

_ABSENT = Sample(float("-inf"), None, None, "it was not read yet")
Labels = tuple[tuple[str, str], ...]


class Params(Model):
    """A metric of kubelets or of the controller-manager, or a query to Prometheus, and the bounds of its value."""

    node: str | None = Field(None, description="whose kubelet: a target, a node's name, or all")
    controller_manager: bool = Field(
        False, alias="controller-manager", description="the controller-manager's, of the inventory's cluster"
    )
    name: str | None = Field(None, description="the metric as it is written there, labels included")
    query: str | None = Field(None, description="name of a query of the experiment (spec.queries)")
    labels: dict[str, str] = Field({}, description="only series of the query that have these labels")
    at_least: float | None = Field(None, alias="at-least")
    at_most: float | None = Field(None, alias="at-most")
    increase: bool = Field(False, description="by how much a counter has grown since judging starts")
    series: Literal["each", "any", "none"] = "each"

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if (self.query is None) == (self.name is None):
            raise ValueError("give exactly one of name (with node or controller-manager) and query")
        if (self.node is not None) + self.controller_manager != (self.name is not None):
            raise ValueError("name takes node, for a kubelet's metric, or controller-manager: true; query neither")
        if self.controller_manager and not (self.name or "").startswith(METRIC_PREFIXES):
            known = ", ".join(kept.partition("{")[0] for kept in METRIC_PREFIXES)
            raise ValueError(f"nodefall keeps of the controller-manager's metrics, labels included: {known}")
        if self.at_least is None and self.at_most is None and (self.name or self.increase):
            raise ValueError("give at-least, at-most or both")
        if self.labels and self.name:
            raise ValueError("labels choose among the series of a query; a name is written with its labels")
        return self

    @property
    def has_bounds(self) -> bool:
        """Whether a value is asked for; else whether there is any series."""
        return self.at_least is not None or self.at_most is not None

    def describe(self) -> str:
        """What is asked for."""
        what = (self.name or f"query {self.query}") + (" grows" if self.increase else "")
        given = (("at least", self.at_least), ("at most", self.at_most))
        bounds = " and ".join(f"{word} {bound:g}" for word, bound in given if bound is not None)
        return f"{what}: {bounds or 'has a result'}"


def _kubelet_samples(scrapes: list[Scrape], params: Params) -> Iterator[ReplicaSample]:
    """The values of one metric. A counter that is not there yet, but later, has not begun to count."""
    name = params.name or ""
    ever = any(name in scrape.values for scrape in scrapes)
    for scrape in scrapes:
        if scrape.status != 200:
            yield scrape.t, scrape.seq, None, "the kubelet's metrics could not be read"
        elif name in scrape.values:
            yield scrape.t, scrape.seq, scrape.values[name], ""
        else:
            yield scrape.t, scrape.seq, 0.0 if ever and params.increase else None, "the kubelet has no such metric"


def _series(answers: list[QuerySample], params: Params) -> dict[Labels, list[ReplicaSample]]:
    """The values of each series of a query that has the labels, in order of time.

    An answer about one moment that lacks a series says that it has no value; one about the whole run only adds values.
    """
    found: dict[Labels, dict[float, ReplicaSample]] = {}
    moments: dict[float, int] = {}
    for answer in answers:
        times = {t for one in answer.result.series for t, _ in one.values}
        if len(times) <= 1:
            moments[next(iter(times), answer.t)] = answer.seq
        for one in answer.result.series:
            if all(one.labels.get(key) == value for key, value in params.labels.items()):
                own = found.setdefault(tuple(sorted(one.labels.items())), {})
                for t, value in one.values:
                    own.setdefault(t, (t, answer.seq, value, "its value is no number"))
    for own in found.values():
        for t, seq in moments.items():
            own.setdefault(t, (t, seq, None, "the query has no such series any more"))
    return {labels: [own[t] for t in sorted(own)] for labels, own in found.items()}


def _increase(readings: list[ReplicaSample], anchor: float) -> Iterator[ReplicaSample]:
    """By how much the counter has grown since the anchor; one that fell was started anew."""
    grown, last = 0.0, None
    before = next((r for r in reversed(readings) if r[0] <= anchor and r[2] is not None), None)
    if before:
        last = before[2]
        yield anchor, before[1], 0.0, ""
    for t, seq, value, why in readings:
        if t <= anchor:
            continue
        if value is not None:
            if last is not None:
                grown += growth(last, value)
            last = value
        yield t, seq, None if value is None else grown, why


def _signal(readings: Iterable[ReplicaSample], params: Params) -> Signal:
    """Whether the value, or its growth, is within the bounds."""
    samples = [_ABSENT]
    least = float("-inf") if params.at_least is None else params.at_least
    most = float("inf") if params.at_most is None else params.at_most
    for t, seq, value, why in readings:
        seen = why if value is None else f"{'it has grown by' if params.increase else 'it is'} {value:g}"
        samples.append(Sample(t, None if value is None else least <= value <= most, seq, seen))
    return Signal(tuple(samples))


def _value_or_increase(readings: list[ReplicaSample], params: Params, view: View) -> Iterable[ReplicaSample]:
    return _increase(readings, view.anchor) if params.increase else readings


def _controller_manager_subject(params: Params, view: View) -> Subject:
    """Raises Undecidable."""
    found, name = replicas(view.timeline), params.name or ""
    if not found:
        raise Undecidable("no controller-manager was read")
    readings = increase_since(found, name, view.anchor) if params.increase else leader_samples(found, name)
    sources = [f"metrics@{url}" for url in found]
    return Subject("kube-controller-manager", mask(_signal(readings, params), view.timeline, *sources))


def _result_signal(answers: list[QuerySample], params: Params) -> Signal:
    """Whether the query has any series with the labels, answer by answer about one moment."""
    samples = [_ABSENT]
    for answer in answers:
        series = answer.result.series
        if all(len(one.values) <= 1 for one in series):
            fit = [s for s in series if all(s.labels.get(key) == value for key, value in params.labels.items())]
            seen = f"{len(fit)} series" + (
                f", as {_format_labels(tuple(sorted(fit[0].labels.items())))}" if fit else ""
            )
            samples.append(Sample(answer.t, bool(fit), answer.seq, seen))
    return Signal(tuple(samples))


def _format_labels(labels: Labels) -> str:
    return "{" + ", ".join(f'{key}="{value}"' for key, value in labels) + "}"


class Metric:
    """A value that kubelets or the controller-manager told, or that a query to Prometheus had, is within bounds.

    A value is good until the next one is read. ``increase`` counts from the last value before judging starts, and goes
    on after a restart that sets the counter back. A query without bounds asks whether it has any result. Of a run,
    nodefall keeps the kubelets' kubelet_graceful_shutdown_* and kubelet_admission_rejections_total. Of the
    controller-manager's replicas the one that leads is believed, and ``increase`` adds up what all have counted.
    """

    name = "metric"
    summary = "a metric of a kubelet or the controller-manager, or a query to Prometheus, is within bounds"
    example = "{assert: metric, with: {query: errors, at-most: 0.01}, after: power-off, always: {for: 2m}}"
    needs = "the metric, read again and again in that time, from the port that tells it or from Prometheus"
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def uses_controller_manager(self, params: Params) -> bool:
        """Whether these are about it."""
        return params.controller_manager

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline, quantifier = view.timeline, Quantifier(params.series)
        if params.node:
            subjects = []
            for node in view.nodes(params.node):
                signal = _signal(
                    _value_or_increase(list(_kubelet_samples(timeline.metrics.get(node, []), params)), params, view),
                    params,
                )
                subjects.append(Subject(node, mask(signal, timeline, f"metrics@{node}")))
            return SubjectSet(params.describe(), tuple(subjects), quantifier, empty_reason="no node was seen")
        if params.controller_manager:
            return SubjectSet(params.describe(), (_controller_manager_subject(params, view),), quantifier)
        answers = timeline.prometheus.get(params.query or "", [])
        if not answers:
            raise Undecidable(f"the query {params.query} was never answered")
        if not params.has_bounds:
            subject = Subject("", mask(_result_signal(answers, params), timeline, "prometheus"))
            return SubjectSet(params.describe(), (subject,), quantifier)
        subjects = [
            Subject(
                _format_labels(labels),
                mask(_signal(_value_or_increase(readings, params, view), params), timeline, "prometheus"),
            )
            for labels, readings in sorted(_series(answers, params).items())
        ]
        return SubjectSet(
            params.describe(), tuple(subjects), quantifier, empty_reason="the query never had such a series"
        )


ASSERTION = Metric()
