"""Replacement of pods by as many others of the same controller; rate and order in which pods begin to match."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, Self

from msgspec import structs
from pydantic import AfterValidator, Field, model_validator

from chaos.core.assertion import Memo, View
from chaos.core.duration import parse_duration
from chaos.core.field_types import DurationText, Model
from chaos.core.indexes import controller_key
from chaos.core.kube import Pod, controller_of, full_name, is_finished, pod_condition
from chaos.core.labels import ZONE_LABEL
from chaos.core.recording import USUAL_LAG
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import History, Version
from chaos.verdicts.judge.pods import node_of
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.selection import Filter, Selection, pod_signal
from chaos.verdicts.judge.sequence import changes
from chaos.verdicts.judge.signals import Observation, from_history, mask_unseen_pods

_NOT_REPLACED = "not replaced"
_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|m|h)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_JITTER = 0.5  # seconds by which two observations may be closer than the changes they report


class Replacement(Model):
    """Conditions on the pod that replaces another."""

    ready: bool = True
    node: Literal["same", "other"] | None = Field(None, description="the node of the pod that it replaces, or another")
    zone: str | None = Field(None, description="a zone's name; same or other, as the pod that it replaces")


class Replacements:
    """Pods created after the set was frozen, each of which replaces one pod of the set.

    A pod of a StatefulSet is replaced by one of the same name, any other pod by one of the same controller.
    """

    def __init__(self, view: View, frozen: Iterable[History[Pod]], moment: float) -> None:
        self.view, self.timeline = view, view.timeline
        self.moment = moment
        self.frozen = set(frozen)
        self.ranks: dict[tuple[str, str], int] = {}

    def signal(self, history: History[Pod], replacement: Replacement) -> Signal:
        """Signal of whether the pod is replaced; the n-th pod of a controller needs the n-th replacement.

        It takes everything as received.
        """
        key = _controller_key(history.last.object)
        if key is None:
            alone = Signal((Sample(float("-inf"), False, None, "no controller replaces the pod"),))
            return mask_unseen_pods(alone, self.timeline)
        rank = self.ranks[key] = self.ranks.get(key, 0) + 1
        new = list(self._candidates(key, node_of(history.last.object), replacement))
        memo = self.view.memo("replaced", self.moment)
        make = partial(_count, new, rank)
        return memo.recall(self.timeline, history, lambda: mask_unseen_pods(make(), self.timeline), rank, new)

    def _candidates(self, key: tuple[str, str], before: str, replacement: Replacement) -> Iterator[Subject]:
        """The pods that may replace one that was on the node ``before``."""
        memo = Memo() if replacement.zone else self.view.memo("replaces", before, self.moment)  # zones are of nodes
        for history in self.timeline.pods.of_controller(key[0]):
            if history not in self.frozen and history.first_time > self.moment:
                make = partial(self._candidate, history, before, replacement)
                its_key, subject = memo.recall(self.timeline, history, make)
                if its_key == key:
                    yield subject

    def _candidate(
        self, history: History[Pod], before: str, replacement: Replacement
    ) -> tuple[tuple[str, str] | None, Subject]:
        pod = history.peek_last().object  # of each of many pods once, and again after a change
        subject = Subject(full_name(pod.metadata), self._candidate_signal(history, before, replacement))
        return _controller_key(pod), subject

    def _candidate_signal(self, history: History[Pod], before: str, replacement: Replacement) -> Signal:
        def observe(version: Version[Pod]) -> Observation:
            pod, node = version.object, node_of(version.object)
            ready = pod_condition(pod, "Ready")
            exists = not version.is_deleted and pod.metadata.deletion_timestamp is None and not is_finished(pod)
            is_ready = ready is not None and ready.status == "True"
            matches = (
                exists
                and (is_ready or not replacement.ready)
                and (replacement.node is None or (bool(node) and (node == before) is (replacement.node == "same")))
                and (replacement.zone is None or self._in_zone(node, before, replacement.zone))
            )
            return matches, f"its replacement is {'' if is_ready and exists else 'not '}ready on {node or 'no node'}"

        first = Sample(float("-inf"), False, None, _NOT_REPLACED)
        signal = Signal(tuple(changes((first, *from_history(history.peek(), observe).samples))))
        created = history.first
        if created.earliest < self.moment and created.t - created.earliest > USUAL_LAG:  # it may be from before
            text = "a pod that may be its replacement was received late"
            unsure = (structs.replace(s, value=None, observation=text) if s.value else s for s in signal.samples)
            return Signal(tuple(unsure))
        return signal

    def _in_zone(self, node: str, before: str, zone: str) -> bool:
        new, old = self._zone(node), self._zone(before)
        if zone in ("same", "other"):
            return bool(new and old) and (new == old) is (zone == "same")
        return new == zone

    def _zone(self, node: str) -> str:
        history = self.timeline.nodes.get(node)
        return (history.last.object.metadata.labels or {}).get(ZONE_LABEL, "") if history else ""


def _count(new: Iterable[Subject], rank: int) -> Signal:
    """Signal of whether there are ``rank`` of the new pods."""
    none = Subject("", Signal((Sample(float("-inf"), False, None, _NOT_REPLACED),)))
    count = combine(SubjectSet("", (none, *new), Quantifier.COUNT, rank))
    described = (
        structs.replace(s, observation=_NOT_REPLACED if s.value is False else s.observation) for s in count.samples
    )
    return Signal(tuple(described)).without_repetitions()


def _controller_key(pod: Pod) -> tuple[str, str] | None:
    """Key that a pod shares with its replacement: the controller, and in a StatefulSet the name."""
    owner = controller_of(pod)
    if owner is None:
        return None
    return controller_key(pod), pod.metadata.name if owner.kind == "StatefulSet" else ""


def parse_rate(text: str) -> float:
    """Parse a rate like ``0.1/s`` or ``6/m``, per second. Raises ValueError."""
    match = _RATE.fullmatch(text)
    if not match:
        raise ValueError(f"invalid rate {text!r}: write it like 0.1/s or 6/m")
    return float(match[1]) / _UNITS[match[2]]


def _check_rate(text: str) -> str:
    parse_rate(text)
    return text


RateText = Annotated[str, AfterValidator(_check_rate), Field(examples=["0.1/s"])]


class Rate(Filter):
    """Number of pods, or of their nodes, that begin to match the filter in any window of length ``over``."""

    at_most: RateText | None = Field(None, alias="at-most")
    at_least: RateText | None = Field(None, alias="at-least")
    over: DurationText = "30s"
    per: Literal["pod", "node"] = "pod"

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.at_most is None and self.at_least is None:
            raise ValueError("give at-most, at-least or both")
        return self

    @property
    def most(self) -> float:
        """Greatest number in one window; at least 1."""
        return math.inf if self.at_most is None else max(1, math.floor(self._number(self.at_most)))

    @property
    def least(self) -> int:
        """Least number in one window."""
        return 0 if self.at_least is None else math.ceil(self._number(self.at_least))

    def format_bounds(self) -> str:
        """Format the bounds."""
        bounds = (("at most", self.at_most), ("at least", self.at_least))
        return " and ".join(f"{word} {rate}" for word, rate in bounds if rate)

    def _number(self, rate: str) -> float:
        return round(parse_rate(rate) * parse_duration(self.over), 6)


class Order(Filter):
    """Order in which pods begin to match the filter; true once ``least`` of them match."""

    by: Literal["ordinal", "priority"]
    descending: bool = False
    least: int = Field(2, ge=2)


@dataclass(frozen=True, slots=True)
class _FirstMatch:
    """The first match of a pod after the beginning."""

    pod: Pod
    sample: Sample


def first_matches(
    pods: Iterable[History[Pod]], pod_filter: Filter, anchor: float, selection: Selection | None
) -> list[_FirstMatch]:
    """First match of each pod, in order of time; pods that match from the beginning do not count."""
    found = []
    for history in pods:
        signal = pod_signal(history, pod_filter, selection)
        if signal.at(anchor).value is True:
            continue
        first = next((s for s in signal.samples if s.t > anchor and s.value is True), None)
        version = history.at(first.t) if first else None
        if first and version:
            found.append(_FirstMatch(version.object, first))
    return sorted(found, key=lambda f: f.sample.t)


def rate_signal(matches: list[_FirstMatch], rate: Rate) -> Signal:
    """Signal of whether the number of matches in the window that ends at the moment is within the bounds."""
    over = parse_duration(rate.over) - _JITTER
    if rate.per == "node":
        nodes: dict[str, _FirstMatch] = {}
        for first in matches:
            nodes.setdefault(node_of(first.pod), first)
        matches = list(nodes.values())
    times = [first.sample.t for first in matches]
    samples = [Sample(float("-inf"), rate.least == 0, None, f"no {rate.per} yet")]
    for t in sorted({*times, *(t + over for t in times)}):
        newest = bisect_right(times, t)
        count = newest - bisect_right(times, t - over)
        observation = f"{count} {rate.per}s in {rate.over}"
        samples.append(Sample(t, rate.least <= count <= rate.most, matches[newest - 1].sample.seq, observation))
    return Signal(tuple(samples))


def order_signal(matches: list[_FirstMatch], order: Order) -> Signal:
    """Signal that is true once enough pods matched in order, and false from the first match out of order."""
    samples = [Sample(float("-inf"), None, None, "too few pods matched yet")]
    last: _FirstMatch | None = None
    for count, first in enumerate(matches, 1):
        if last is not None and _rank(first.pod, order) < _rank(last.pod, order):
            observation = f"{full_name(first.pod.metadata)} matched after {full_name(last.pod.metadata)}"
            never = Sample(float("-inf"), False, None, "too few pods matched yet")
            return Signal((never, Sample(first.sample.t, False, first.sample.seq, observation)))
        last = first
        if count == order.least:
            samples.append(Sample(first.sample.t, True, first.sample.seq, f"{count} pods matched in order"))
    return Signal(tuple(samples))


def _rank(pod: Pod, order: Order) -> int:
    if order.by == "priority":
        rank = (pod.spec.priority if pod.spec else None) or 0
    else:
        ordinal = pod.metadata.name.rpartition("-")[2]
        rank = int(ordinal) if ordinal.isdigit() else 0
    return -rank if order.descending else rank
