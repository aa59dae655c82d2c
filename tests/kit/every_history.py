"""A naive judge of the readiness of two objects: it enumerates the histories that fit a recording, and judges each.

It shares no code with :mod:`chaos.verdicts.judge`: what proofs and lists mean is written here once more. Times are in
seconds after T0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

_EPSILON = 1e-4  # seconds; all else differs by more, or is equal
_History = dict[str, list[tuple[float, bool]]]  # by name: from when on which value, in order of time


@dataclass(frozen=True)
class Change:
    """A version of the readiness of a Node or pod; ``happened`` is what the judges do not know."""

    node: str
    order: int
    happened: float
    received: float
    value: bool


@dataclass(frozen=True)
class Proof:
    """Recorded at ``t``: all from before ``until`` was received; the store had nothing above ``order`` at ``read``."""

    t: float
    until: float
    read: float
    order: int


@dataclass(frozen=True)
class Question:
    """``kind``: within, always or never, for ``seconds`` from the anchor on; ``hold``: for how long, with within."""

    text: str
    truth: Callable[[Sequence[bool]], bool]  # of the values of both
    kind: str
    seconds: float
    hold: float = 0.0


@dataclass
class Recorded:
    """What is recorded of two objects; ``first``: in the first list; ``blind``: a window, with a list at its end."""

    first: dict[str, bool]
    changes: list[Change] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    blind: tuple[float, float] | None = None

    def until(self, end: float) -> Recorded:
        """What is recorded until then."""
        blind = self.blind if self.blind and self.blind[1] <= end else None
        changes = [change for change in self.changes if change.received <= end]
        return Recorded(self.first, changes, [proof for proof in self.proofs if proof.t <= end], blind)

    @property
    def known_until(self) -> float:
        """The moment after which anything may have happened that is not received."""
        return max((proof.until for proof in self.proofs), default=math.inf)


def verdicts(recorded: Recorded, question: Question, anchor: float, end: float) -> set[bool]:
    """The answers of all histories that fit what is recorded until ``end``; empty without a history that fits."""
    return {_answer(question, history, anchor) for history in _histories(recorded.until(end), anchor, question, end)}


def _histories(recorded: Recorded, anchor: float, question: Question, end: float) -> Iterator[_History]:
    changes = sorted(recorded.changes, key=lambda change: change.order)
    end_of_question = anchor + question.seconds + question.hold
    for moments in _moments(changes, recorded, {anchor, anchor + question.seconds, end_of_question}):
        history: _History = {node: [(-math.inf, value)] for node, value in recorded.first.items()}
        for change, moment in zip(changes, moments, strict=True):
            history[change.node].append((moment, change.value))
        for values in history.values():
            values.sort(key=lambda item: item[0])
        gaps = [(node, *gap) for node in history for gap in _lost(node, recorded, changes, moments)]
        known_until = min(recorded.known_until, end)
        if known_until <= end_of_question:
            gaps += [
                (node, max(known_until, values[-1][0]) + 9 * _EPSILON, math.inf) for node, values in history.items()
            ]
        for chosen in itertools.product((False, True), repeat=len(gaps)):
            yield _flipped(history, [gap for gap, is_chosen in zip(gaps, chosen, strict=True) if is_chosen])


def _moments(changes: Sequence[Change], recorded: Recorded, marks: set[float]) -> Iterator[tuple[float, ...]]:
    """When each change may have happened: next to all that matters, in the order of the resourceVersions."""
    if not recorded.proofs:  # then times of receipt count as exact
        yield tuple(change.received for change in changes)
        return
    bounds = [_bounds(change, recorded) for change in changes]
    marks = marks | {moment for bound in bounds for moment in bound}
    choices = []
    for index, (low, high) in enumerate(bounds):
        near = {mark - (len(changes) - index) * _EPSILON for mark in marks if low < mark <= high}
        near |= {mark + (index + 1) * _EPSILON for mark in marks if low <= mark < high}
        choices.append(sorted(near))
    yield from _ascending(choices, -math.inf)


def _ascending(choices: Sequence[Sequence[float]], after: float) -> Iterator[tuple[float, ...]]:
    """One of each, later than the one before."""
    if not choices:
        yield ()
        return
    for moment in choices[0]:
        if moment > after:
            for others in _ascending(choices[1:], moment):
                yield (moment, *others)


def _bounds(change: Change, recorded: Recorded) -> tuple[float, float]:
    low, high = -math.inf, change.received
    for proof in recorded.proofs:
        if change.received > proof.t:
            low = max(low, proof.until)
        if change.order > proof.order:
            low = max(low, proof.read)
        else:
            high = min(high, proof.t)
    return max(low, 0.0), high


def _lost(
    node: str, recorded: Recorded, changes: Sequence[Change], moments: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """Versions between the last before a blind window and that in the list after it were never received."""
    if recorded.blind is None:
        return
    start, end = recorded.blind
    own = [(change, moment) for change, moment in zip(changes, moments, strict=True) if change.node == node]
    listed = next((moment for change, moment in own if change.received == end), None)
    if listed is not None:
        before = [moment for change, moment in own if change.received < end]
        low = max([start, *before[-1:]])
        if low + _EPSILON < listed - _EPSILON:
            yield low + _EPSILON, listed - _EPSILON


def _flipped(history: _History, gaps: Sequence[tuple[str, float, float]]) -> _History:
    result = dict(history)
    for node, low, high in gaps:
        values = result[node]
        inside = [(low, not _at(values, low)), *((t, not value) for t, value in values if low < t < high)]
        after = [(high, _at(values, high))] if high < math.inf else []
        outside = [(t, value) for t, value in values if t < low or t > high]
        result[node] = sorted([*outside, *inside, *after], key=lambda item: item[0])
    return result


def _at(values: Sequence[tuple[float, bool]], t: float) -> bool:
    return [value for since, value in values if since <= t][-1]


def _answer(question: Question, history: _History, anchor: float) -> bool:
    """The exact answer."""
    changes = sorted({t for values in history.values() for t, _ in values})
    spans = [(t, question.truth([_at(values, t) for values in history.values()])) for t in changes]
    ends = [*changes[1:], math.inf]
    true = [(since, until) for (since, value), until in zip(spans, ends, strict=True) if value]
    deadline = anchor + question.seconds
    if question.kind == "never":
        return not any(since < deadline and until > anchor for since, until in true)
    if question.kind == "always":
        return not any(
            since < deadline and until > anchor for (since, value), until in zip(spans, ends, strict=True) if not value
        )
    return any(
        max(since, anchor) <= deadline and until > anchor and until - max(since, anchor) >= question.hold
        for since, until in _joined(true)
    )


def _joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for since, until in spans:
        if joined and joined[-1][1] == since:
            joined[-1] = (joined[-1][0], until)
        else:
            joined.append((since, until))
    return joined
