"""The question ``pods``, and other names for parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec
from pydantic import model_validator

from chaos.judge.pod_filter import Count, Filter, pod_signal, unobservable
from chaos.judge.pods import pod_facts
from chaos.judge.quantifiers import combine
from chaos.judge.rates import Order, Rate, first_matches, order_signal, rate_signal
from chaos.judge.replacements import Replacement, Replacements
from chaos.judge.selection import PodSetParams, Selection
from chaos.judge.signals import mask_pods
from chaos.model.assertion import NothingToJudge, View
from chaos.model.duration import parse_duration
from chaos.model.kube import Pod, full_name
from chaos.model.signal import Quantifier, Signal, Subject, SubjectSet
from chaos.model.timeline import History

_QUESTIONS = ("each", "none", "any", "count", "rate", "order")


class QuantifiedFilter(Filter):
    """A filter for pods of a frozen set."""

    replaced: Replacement | None = None

    def describe(self) -> str:
        told = self.replaced.model_dump(exclude_none=True) if self.replaced else {}
        replaced = [f"a replacement with {', '.join(f'{k} {str(v).lower()}' for k, v in told.items())}"] if told else []
        own = [super().describe()] if self.model_fields_set & Filter.model_fields.keys() else []
        return ", ".join([*own, *replaced])


class Quantity(Count, QuantifiedFilter):
    """How many of them."""


class Params(PodSetParams):
    """Which pods (``node`` to ``except``), and exactly one of each, none, any, count, rate and order."""

    each: QuantifiedFilter | None = None
    none: QuantifiedFilter | None = None
    any: QuantifiedFilter | None = None
    count: Quantity | None = None
    rate: Rate | None = None
    order: Order | None = None

    @model_validator(mode="after")
    def _check_exactly_one(self) -> Self:
        if sum(getattr(self, question) is not None for question in _QUESTIONS) != 1:
            raise ValueError(f"give exactly one of {', '.join(_QUESTIONS)}")
        if self.count is not None and self.count.replaced is not None and self.at is None:
            raise ValueError("replaced is about pods of a set: with count, say at which step it is frozen (at)")
        return self

    def quantifier_and_filter(self) -> tuple[Quantifier, QuantifiedFilter]:
        """The quantifier of a question about single pods, and its filter."""
        found: dict[Quantifier, QuantifiedFilter | None] = {q: getattr(self, q.value) for q in Quantifier}
        return next((quantifier, some) for quantifier, some in found.items() if some is not None)


class Pods:
    """A set of pods, frozen at a moment, and what each, any, none or some of them look like.

    A pod is followed by its UID; one that is gone keeps its last state, and the reason with which it was disrupted is
    the one with which it ended, whatever its clean-up writes later. If its last state was not seen (it vanished in a
    blind window), it is unknown. ``count`` without ``at`` counts, at every moment, the pods that belong then.
    ``replaced``: another pod of the same controller took the place, one for each. ``rate``: so many pods, or nodes
    with such a pod, come to look like the filter in any stretch of time; ``order``: they do so one after the other.
    """

    name = "pods"
    summary = "each, any, none or so many of a set of pods have a phase, reason, disruption, readiness, replacement..."
    example = (
        "{assert: pods, with: {node: victim, at: power-off, except: [daemonset, finished, terminating], "
        "each: {disruption: TerminationByKubelet, phase: [Succeeded, Failed]}}, "
        "within: kubelet.shutdownGracePeriod + 10s}"
    )
    needs = "the pods, watched without a gap from before the moment at which the set is frozen"
    params: type[Params] = Params
    node_fields = ("node",)
    moment_fields = ("at",)

    def subjects(self, params: Params, view: View) -> SubjectSet:
        selection = Selection(params, view)
        series = params.rate or params.order
        if series:
            return _series(series, selection)
        quantifier, wanted = params.quantifier_and_filter()
        if isinstance(wanted, Quantity) and params.at is None:
            pods = view.timeline.pods.values()
            subjects = [_subject(view, h, _match_signal(view, h, wanted, selection)) for h in pods] + unobservable(view)
        else:
            frozen = selection.freeze()
            if not frozen:
                raise NothingToJudge(selection.empty_reason)
            replacements = Replacements(view.timeline, frozen, selection.moment)
            subjects = [_subject(view, h, _match_and_replacement_signal(view, h, wanted, replacements)) for h in frozen]
        if isinstance(wanted, Quantity):
            expected = f"{wanted.format_range()} pods with {wanted.describe()}"
            return SubjectSet(expected, tuple(subjects), quantifier, wanted.least, wanted.most)
        expected = f"{'no' if quantifier is Quantifier.NONE else quantifier.value} pod with {wanted.describe()}"
        return SubjectSet(expected, tuple(subjects), quantifier)


def _match_signal(view: View, history: History[Pod], wanted: Filter, selection: Selection | None) -> Signal:
    return mask_pods(pod_signal(history, wanted, selection), view.timeline)


def _match_and_replacement_signal(
    view: View, history: History[Pod], wanted: QuantifiedFilter, replacements: Replacements
) -> Signal:
    """Whether it looks like the filter and, if that is asked, was replaced."""
    signals = (
        [_match_signal(view, history, wanted, None)] if wanted.model_fields_set - {"replaced", "least", "most"} else []
    )
    if wanted.replaced is not None:
        signals.append(mask_pods(replacements.signal(history, wanted.replaced), view.timeline))
    if len(signals) == 1:
        return signals[0]
    return combine(SubjectSet("", tuple(Subject("", signal) for signal in signals)))


def _subject(view: View, history: History[Pod], signal: Signal) -> Subject:
    latest = history.at(view.anchor) or history.versions[0]
    return Subject(full_name(latest.object.metadata), signal, pod_facts(latest.object))


def _series(wanted: Rate | Order, selection: Selection) -> SubjectSet:
    """One subject: all of them together."""
    timeline, anchor, frozen = selection.view.timeline, selection.view.anchor, selection.params.at is not None
    pods = selection.freeze() if frozen else list(timeline.pods.values())
    if not pods:
        raise NothingToJudge(selection.empty_reason)
    found = first_matches(pods, wanted, anchor, None if frozen else selection)
    blinds = [b for b in timeline.blind_windows if b.covers("pods") and (b.end is None or b.end > anchor)]
    if isinstance(wanted, Order):
        # What is seen after a blind window may have come in any order inside it.
        signal = order_signal(found, wanted).mask(msgspec.structs.replace(b, end=None) for b in blinds)
        expected = f"pods come to have {wanted.describe()} one after the other, by {wanted.by}"
    else:
        # What is seen at once after a blind window may have come slowly inside it.
        over = parse_duration(wanted.over)
        hidden = (b if b.end is None else msgspec.structs.replace(b, end=b.end + over) for b in blinds)
        signal = rate_signal(found, wanted).mask(hidden)
        expected = f"{wanted.format_bounds()} {wanted.per}s come to have {wanted.describe()}, over {wanted.over}"
    return SubjectSet(expected, (Subject("", mask_pods(signal, timeline)),))


class PodsAlias(Pods):
    """Another name for ``pods`` with the question ``asks`` given, as YAML has it.

    What the experiment writes wins over it; where that asks each, none, any or count instead, it is about the same
    look of a pod.
    """

    def __init__(self, name: str, summary: str, asks: dict[str, dict[str, Any]], example: str) -> None:
        self.name, self.summary, self.example = name, summary, example
        self.expands_to = f"pods with {_flow_yaml(asks)}"
        self.params = _params_with_preset(asks)


def _params_with_preset(asks: dict[str, dict[str, Any]]) -> type[Params]:
    ((question, given),) = asks.items()
    look = {key: value for key, value in given.items() if key in QuantifiedFilter.model_fields}

    class Given(Params):
        @model_validator(mode="before")
        @classmethod
        def _expand(cls, data: Any) -> Any:
            if not isinstance(data, Mapping):
                return data
            asked = next((key for key in _QUESTIONS if key in data), question)
            own = {} if data.get(asked) is None else data[asked]
            if not isinstance(own, Mapping):
                return data
            return {**data, asked: {**(given if asked == question else look), **own}}

    Given.__name__, Given.__doc__ = Params.__name__, Params.__doc__
    return Given


def _flow_yaml(value: Any) -> str:
    """As YAML writes it in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow_yaml(one)}" for key, one in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)
