"""Rate and order in which pods begin to match."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from chaos.core.duration import parse_duration
from chaos.core.field_types import DurationText, Flag
from chaos.core.json_schema import matching
from chaos.core.kube import Pod, full_name
from chaos.core.signal import Sample, Signal
from chaos.core.timeline import History
from chaos.verdicts.judge.pods import node_of
from chaos.verdicts.judge.selection import Filter, Selection, pod_signal
from chaos.verdicts.judge.temporal import candidates, runs_of

_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|m|h)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_TOLERANCE = 0.1  # of the window: pods that are written one after the other are not exactly as far apart as planned


def parse_rate(text: str) -> float:
    """Parse a rate like ``0.1/s`` or ``6/m``, per second. Raises ValueError."""
    match = _RATE.fullmatch(text)
    if not match:
        raise ValueError(f"invalid rate {text!r}: write it like 0.1/s or 6/m")
    return float(match[1]) / _UNITS[match[2]]


def _check_rate(text: str) -> str:
    parse_rate(text)
    return text


RateText = Annotated[
    str, AfterValidator(_check_rate), matching(r"[0-9]+(?:\.[0-9]+)?/(?:s|m|h)"), Field(examples=["0.1/s"])
]


class Rate(Filter):
    """Number of pods, or of their nodes, that begin to match the filter in any window of length ``over``."""

    SOME_OF = ("at-most", "at-least")

    at_most: RateText | None = Field(None, alias="at-most")
    at_least: RateText | None = Field(None, alias="at-least")
    over: DurationText = "30s"
    per: Literal["pod", "node"] = "pod"

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.at_most is not None and self.most < 1:
            raise ValueError(f"a window of {self.over} admits no {self.per} at {self.at_most}: give a longer over")
        return self

    @property
    def most(self) -> float:
        """Greatest number in one window."""
        return math.inf if self.at_most is None else math.floor(self._number(self.at_most))

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
    descending: Flag = False
    least: int = Field(2, ge=2)

    def rank(self, pod: Pod) -> int:
        """Pods with a lower rank come first."""
        if self.by == "priority":
            rank = (pod.spec.priority if pod.spec else None) or 0
        else:
            ordinal = pod.metadata.name.rpartition("-")[2]
            rank = int(ordinal) if ordinal.isdigit() else 0
        return -rank if self.descending else rank


@dataclass(frozen=True, slots=True)
class FirstMatch:
    """A pod first matched at some moment in (``lo``, ``hi``], and, unless ``is_certain``, perhaps not at all."""

    pod: Pod
    lo: float
    hi: float
    sample: Sample
    is_certain: bool = True

    def is_before(self, other: FirstMatch) -> bool | None:
        """Whether this match came before another match; None if that is unknown."""
        if self.sample.order and other.sample.order:
            return self.sample.order < other.sample.order
        exact = self.lo == self.hi and other.lo == other.hi
        if exact or self.hi <= other.lo or other.hi <= self.lo:
            return self.hi < other.hi
        return None


def first_matches(
    pods: Mapping[History[Pod], bool], pod_filter: Filter, since: tuple[float, float], selection: Selection | None
) -> list[FirstMatch]:
    """The first match of each pod since a moment in ``since``, in order of time. Pods that already match then do not
    count. ``pods``: with whether they certainly belong to the set.
    """
    found = []
    for history, is_member in pods.items():
        signal = pod_signal(history, pod_filter, selection)
        runs = runs_of(signal)
        before = {run.value for t in since for run in candidates(runs, t)}
        if before == {True}:
            continue
        first = next((s for s in signal.samples if s.value is not False and s.t > since[0]), None)
        version = next((v for v in history if first and v.seq == first.seq), None)
        if first and version:  # two versions of one pod follow each other, whatever their intervals
            is_certain = is_member and first.value is True and True not in before and first.lo >= since[1]
            found.append(FirstMatch(version.object, max(first.lo, since[0]), first.t, first, is_certain))
    return sorted(found, key=lambda match: match.hi)


def rate_signal(matches: Iterable[FirstMatch], rate: Rate) -> Signal:
    """Signal of whether the number of matches in the window that ends at the moment is within the bounds.

    A window is a tenth shorter for ``at-most``, and a tenth longer for ``at-least``.
    """
    found = list(matches)
    if rate.per == "node":
        nodes: dict[str, FirstMatch] = {}
        for match in found:
            nodes.setdefault(node_of(match.pod), match)
        found = list(nodes.values())
    over = parse_duration(rate.over)
    spans = over * (1 - _TOLERANCE), over * (1 + _TOLERANCE)
    samples = [Sample(float("-inf"), rate.least == 0, None, f"no {rate.per} yet")]
    for t in sorted({edge for match in found for edge in _edges(match, spans)}):
        few, many = _number(found, t, spans[0]), _number(found, t, spans[1])
        value: bool | None = None
        if few[1] <= rate.most and many[0] >= rate.least:
            value = True
        elif few[0] > rate.most or many[1] < rate.least:
            value = False
        newest = max((match for match in found if match.hi <= t), key=lambda match: match.hi, default=found[0])
        samples.append(Sample(t, value, newest.sample.seq, f"{few[1]} {rate.per}s in {rate.over}"))
    return Signal(tuple(samples))


def _edges(match: FirstMatch, spans: Iterable[float]) -> Iterator[float]:
    for moment in {match.lo, match.hi}:
        yield moment
        yield from (moment + span for span in spans)


def _number(matches: Iterable[FirstMatch], t: float, span: float) -> tuple[int, int]:
    """The least and the greatest number of matches in the window (t - span, t]."""
    least = most = 0
    for match in matches:
        within = (match.lo <= t if match.lo == match.hi else match.lo < t) and match.hi > t - span
        most += within
        certain = match.hi <= t and (match.lo >= t - span if match.lo < match.hi else match.hi > t - span)
        least += certain and match.is_certain
    return least, most


def order_signal(matches: list[FirstMatch], order: Order) -> Signal:
    """Signal that is true once enough pods matched in order, and false before, and from the first out of order."""
    samples = [Sample(float("-inf"), False, None, "too few pods matched yet")]
    doubt = False
    for count, match in enumerate(matches, 1):
        for other in matches[: count - 1]:
            is_reversed = _is_reversed(other, match, order)
            if is_reversed and match.is_certain and other.is_certain:
                text = f"{full_name(match.pod.metadata)} matched after {full_name(other.pod.metadata)}"
                return Signal((samples[0], Sample(match.hi, False, match.sample.seq, text, match.sample.earliest)))
            doubt = doubt or is_reversed is not False
        doubt = doubt or not match.is_certain
        if count >= order.least:
            text = "the order is not known" if doubt else f"{count} pods matched in order"
            samples.append(Sample(match.hi, None if doubt else True, match.sample.seq, text, match.sample.earliest))
    return Signal(tuple(samples))


def _is_reversed(one: FirstMatch, two: FirstMatch, order: Order) -> bool | None:
    """Whether the match with the higher rank came before the other; None if that is unknown."""
    ranks = order.rank(one.pod), order.rank(two.pod)
    if ranks[0] == ranks[1]:
        return False
    first, second = (one, two) if ranks[0] > ranks[1] else (two, one)
    return first.is_before(second)
