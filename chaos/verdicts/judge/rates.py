"""Rate and order in which pods begin to match a filter."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from chaos.core.duration import parse_duration
from chaos.core.field_types import DurationText
from chaos.core.kube import Pod, full_name
from chaos.core.signal import Sample, Signal
from chaos.core.timeline import History
from chaos.verdicts.judge.pod_filter import Filter, pod_signal
from chaos.verdicts.judge.pods import node_of
from chaos.verdicts.judge.selection import Selection

_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|m|h)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_JITTER = 0.5  # seconds by which two observations may be closer than the changes they report


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
