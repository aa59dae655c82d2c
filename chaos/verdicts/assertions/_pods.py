"""The assertion ``pods`` and its aliases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from msgspec import structs
from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from chaos.core.assertion import Claim, Names, NothingToJudge, View
from chaos.core.duration import parse_duration
from chaos.core.kube import Pod, full_name
from chaos.core.signal import Quantifier, Signal, Subject, SubjectSet
from chaos.core.timeline import History, Version
from chaos.verdicts.assertions._pod_claim import PodSubject, question_claim, state_words
from chaos.verdicts.judge.availability import Machines, Word
from chaos.verdicts.judge.census import Census
from chaos.verdicts.judge.machines import Machine
from chaos.verdicts.judge.pods import node_of, pod_facts
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.replacements import Replacement, Replacements
from chaos.verdicts.judge.selection import Count, Filter, PodSetParams, Selection, unseen_pod
from chaos.verdicts.judge.series import Order, Rate, first_matches, order_signal, rate_signal
from chaos.verdicts.judge.signals import Observation, from_history, mask_pods, mask_unproven, mask_unseen_pods

_NOTHING = Signal(())
_QUESTIONS = ("each", "none", "any", "count", "rate", "order")


class QuantifiedFilter(Filter):
    """Filter of pods in a frozen set."""

    replaced: Replacement | None = None


class Quantity(Count, QuantifiedFilter):
    """Filter, and the number of pods that match it."""

    def range(self, elsewhere: str = "") -> SubjectSet:
        """The expectation about the number, without the pods. ``elsewhere``: what follows the state."""
        state, number = state_words(self, self.replaced, is_exact=True) + elsewhere, self.format_range()
        verb, noun = ("is", "pod") if number in ("at least 1", "at most 1", "exactly 1") else ("are", "pods")
        unit = f"pods {state_words(self, self.replaced)}{elsewhere}"
        return SubjectSet(f"{number} {noun} {verb} {state}", (), Quantifier.COUNT, self.least, self.most, unit=unit)


class Params(PodSetParams):
    """Selection of pods (``node`` to ``except``), and exactly one of each, none, any, count, rate and order."""

    ONE_OF = _QUESTIONS

    as_: Word = Field(
        "effective",
        alias="as",
        description="What ready means. effective: a pod on a machine that is off is not ready. reported: "
        "as the API reports it.",
    )
    not_on: str | None = Field(
        None,
        alias="not-on",
        description="A target. The pods, or with replaced their replacements, must be bound to nodes outside it.",
    )
    each: QuantifiedFilter | None = None
    none: QuantifiedFilter | None = None
    any: QuantifiedFilter | None = None
    count: Quantity | None = None
    rate: Rate | None = None
    order: Order | None = None

    @model_validator(mode="after")
    def _check_exactly_one(self) -> Self:
        if self.not_on is not None and (self.rate or self.order):
            raise ValueError("not-on is for each, none, any and count")
        if self.count is not None and self.count.replaced is not None and self.at is None:
            raise ValueError("replaced needs a frozen set: with count, give the step at which it is frozen (at)")
        if self.count is not None and self.count.gone and self.at is None:
            raise ValueError("count without at counts pods that exist: give the step at which the set is formed (at)")
        return self

    def quantifier_and_filter(self) -> tuple[Quantifier, QuantifiedFilter]:
        """Quantifier of a question about single pods, and its filter."""
        filters: dict[Quantifier, QuantifiedFilter | None] = {q: getattr(self, q.value) for q in Quantifier}
        return next((quantifier, pod_filter) for quantifier, pod_filter in filters.items() if pod_filter is not None)


class Pods:
    """Each, any, none or a number of the pods in a set match a filter. The set is frozen at a moment.

    Pods are identified by UID. A deleted pod keeps its last state. The reason of its disruption is the reason with
    which it ended, even if a later cleanup writes another reason. If its last state was not observed (the pod
    vanished in an observation gap), the result is unknown. ``count`` without ``at`` counts the pods that belong to the
    set at each moment. ``replaced`` means that another pod of the same controller replaces each pod. With ``node:
    other`` it is on any node but the pod's own, which may be another node of the target; with ``not-on`` it is outside
    the target. ``rate`` is about the number of pods, or of nodes with such a pod, that begin to match within any
    window. ``order`` means that pods begin to match one after the other.
    """

    name = "pods"
    summary = "each, any, none or a number of a set of pods have a phase, reason, disruption, readiness, replacement..."
    example = (
        "{assert: pods, with: {node: victim, at: power-off, except: [daemonset, finished, terminating], "
        "each: {disruption: TerminationByKubelet, phase: [Succeeded, Failed]}}, "
        "within: kubelet.shutdownGracePeriod + 10s}"
    )
    needs = "the pods, watched without a gap since before the set is frozen"
    params: type[Params] = Params
    node_fields = ("node", "not_on")
    moment_fields = ("at",)
    masks_itself = True
    sources = ("pods",)

    def claim(self, params: Params, names: Names) -> Claim:
        pods = PodSubject(params, names, f", not{names.on(params.not_on)}" if params.not_on else "")
        if series := params.rate or params.order:
            return question_claim(series, None, None, pods)
        quantifier, pod_filter = params.quantifier_and_filter()
        return question_claim(pod_filter, quantifier, pod_filter.replaced, pods)

    def subjects(self, params: Params, view: View) -> SubjectSet:
        selection = Selection(params, view)
        series = params.rate or params.order
        if series:
            return _series(series, selection)
        quantifier, pod_filter = params.quantifier_and_filter()
        machines = Machines(view.timeline, params.as_)
        avoided = frozenset(view.nodes(params.not_on)) if params.not_on else frozenset[str]()
        elsewhere = f", not on {', '.join(sorted(avoided))}" if avoided else ""
        if isinstance(pod_filter, Quantity) and params.at is None:
            return _counted(view, pod_filter, selection, machines, avoided, elsewhere)
        frozen = selection.freeze()
        if not frozen and not isinstance(pod_filter, Quantity):
            raise NothingToJudge(selection.empty_reason)
        replacements = Replacements(view, frozen, selection.moment, machines, avoided)
        subjects = [
            structs.replace(
                _named(view, history),
                signal=_match_and_replacement_signal(view, history, pod_filter, replacements, machines),
                is_certain=is_certain,
            )
            for history, is_certain in frozen.items()
        ]
        if isinstance(pod_filter, Quantity):
            return replace(pod_filter.range(elsewhere), subjects=tuple(subjects))
        word = {Quantifier.NONE: "no", Quantifier.ANY: "at least one"}.get(quantifier, "every")
        expected = f"{word} pod is {state_words(pod_filter, pod_filter.replaced, is_exact=True)}{elsewhere}"
        return SubjectSet(expected, tuple(subjects), quantifier)


def _match_signal(view: View, history: History[Pod], pod_filter: Filter, machines: Machines) -> Signal:
    timeline = view.timeline

    def make() -> tuple[Signal, str]:
        uid = history.last.object.metadata.uid
        return mask_unseen_pods(machines.signal(history, pod_filter), timeline, uid), uid

    signal, uid = view.memo("match").recall(timeline, history, make, machines.of(history))
    return mask_unproven(signal, timeline, "pods", uid=uid)


def _and_elsewhere(signal: Signal, history: History[Pod], avoided: frozenset[str]) -> Signal:
    """The signal, false while the pod is on one of the avoided nodes, or on none."""
    if not avoided:
        return signal

    def observe(version: Version[Pod]) -> Observation:
        node = node_of(version.object)
        return bool(node) and node not in avoided, f"on {node}" if node else "not bound to a node"

    return combine(SubjectSet("", (Subject("", signal), Subject("", from_history(history.peek(), observe)))))


def _counted(
    view: View,
    quantity: Quantity,
    selection: Selection,
    machines: Machines,
    avoided: frozenset[str],
    elsewhere: str,
) -> SubjectSet:
    """The subjects of a set that changes."""
    unseen = unseen_pod(view)

    def make(history: History[Pod]) -> Subject:
        versions = history.peek()  # of each of many pods once, and again after a change
        signal = _and_elsewhere(machines.signal(history, quantity, selection, leaves=True), history, avoided)
        latest = next((version for version in reversed(versions) if version.t <= view.anchor), versions[0])
        metadata = versions[-1].object.metadata
        return _subject(latest, mask_unseen_pods(signal, view.timeline, metadata.uid))

    down = () if quantity.ready is None else machines.down()
    seen: dict[str, Machine] = view.memo("machines that were down").keep(dict)
    changed = [machine.node for machine in down if seen.get(machine.node) != machine]
    seen.update((machine.node, machine) for machine in down)
    stale = [pod.peek_last().object.metadata.uid for pod in view.timeline.pods.on_nodes(changed)]
    census = view.memo(selection.nodes, selection.namespace).keep(lambda: Census(quantity.range(elsewhere)))
    return census.subjects(view.timeline, unseen, selection.is_candidate, make, stale)


def _match_and_replacement_signal(
    view: View, history: History[Pod], pod_filter: QuantifiedFilter, replacements: Replacements, machines: Machines
) -> Signal:
    """Signal of whether the pod matches the filter and, if the filter has ``replaced``, is replaced."""
    signals = (
        [_match_signal(view, history, pod_filter, machines)]
        if pod_filter.model_fields_set - {"replaced", "least", "most"}
        else []
    )
    if pod_filter.replaced is not None:
        signals.append(mask_unproven(replacements.signal(history, pod_filter.replaced), view.timeline, "pods"))
    elif replacements.avoided:
        signals = [_and_elsewhere(signals[0], history, replacements.avoided)]
    if len(signals) == 1:
        return signals[0]
    return combine(SubjectSet("", tuple(Subject("", signal) for signal in signals)))


def _named(view: View, history: History[Pod]) -> Subject:
    """A pod without its signal."""

    def make() -> Subject:
        return _subject(history.at(view.anchor) or history.first, _NOTHING)

    return view.memo("subject").recall(view.timeline, history, make)


def _subject(latest: Version[Pod], signal: Signal) -> Subject:
    """A pod with a signal; ``latest``: its last version at the anchor, or its first."""
    return Subject(full_name(latest.object.metadata), signal, pod_facts(latest.object))


def _series(pod_filter: Rate | Order, selection: Selection) -> SubjectSet:
    """Subject set with a single subject: all pods together."""
    timeline, since, frozen = selection.view.timeline, selection.view.since, selection.params.at is not None
    pods = selection.freeze() if frozen else dict.fromkeys(selection.candidates(), True)
    if frozen and not pods:
        raise NothingToJudge(selection.empty_reason)
    matches = first_matches(pods, pod_filter, since, None if frozen else selection)
    blinds = timeline.blind_windows_in(["pods"], since[0], timeline.end)
    if isinstance(pod_filter, Order):
        # Changes observed after an observation gap may have happened in any order during it.
        signal = order_signal(matches, pod_filter).mask(structs.replace(b, end=None) for b in blinds)
        state = state_words(pod_filter, None, is_exact=True)
        expected = f"pods become {state} one after the other, by {pod_filter.by}"
    else:
        # Changes observed at once after an observation gap may have happened slowly during it.
        over = parse_duration(pod_filter.over)
        hidden = (b if b.end is None else structs.replace(b, end=b.end + over) for b in blinds)
        signal = rate_signal(matches, pod_filter).mask(hidden)
        bounds = f"{pod_filter.format_bounds()} {pod_filter.per}s"
        state = state_words(pod_filter, None, is_exact=True)
        become = "become" if pod_filter.per == "pod" else "get pods that are"
        expected = f"{bounds} {become} {state}, over {pod_filter.over}"
    return SubjectSet(expected, (Subject("", mask_pods(signal, timeline)),))


class PodsAlias(Pods):
    """An alias of ``pods`` with the question ``preset`` in its YAML form. The experiment can override parts of it, or
    use another quantifier (each, none, any, count) with the same filter.
    """

    def __init__(self, name: str, summary: str, preset: dict[str, dict[str, Any]], example: str) -> None:
        self.name, self.summary, self.example = name, summary, example
        self.expands_to = f"pods with {_flow_yaml(preset)}"
        self.params = _params_with_preset(preset)


def _params_with_preset(preset: dict[str, dict[str, Any]]) -> type[Params]:
    ((question, defaults),) = preset.items()
    filter_defaults = {key: value for key, value in defaults.items() if key in QuantifiedFilter.model_fields}

    class PresetParams(Params):
        @model_validator(mode="before")
        @classmethod
        def _expand(cls, data: Any) -> Any:
            if not isinstance(data, Mapping):
                return data
            key = next((name for name in _QUESTIONS if name in data), question)
            own = {} if data.get(key) is None else data[key]
            if not isinstance(own, Mapping):
                return data
            return {**data, key: {**(defaults if key == question else filter_defaults), **own}}

        @classmethod
        def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
            found = super().__get_pydantic_json_schema__(core, handler)
            handler.resolve_ref_schema(found).pop("oneOf")  # without a question, it is that of the preset
            return found

    PresetParams.__name__, PresetParams.__doc__ = Params.__name__, Params.__doc__
    return PresetParams


def _flow_yaml(value: Any) -> str:
    """Format a value as YAML in flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow_yaml(item)}" for key, item in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)
