"""The state that came nearest to what an expectation demanded, or nearest to its limit, and when it was observed."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.core.signal import Quantifier, Sample, Signal, SubjectSet
from chaos.core.verdict import Status
from chaos.verdicts.judge.quantifiers import Tally, tallies
from chaos.verdicts.judge.sentences import format_since
from chaos.verdicts.judge.temporal import Answer


@dataclass(frozen=True, slots=True)
class State:
    """A state that was observed at ``t``. ``distance``: from the demanded state, 0 if the state meets it."""

    t: float
    distance: float
    text: str


def describe_nearest(
    subjects: SubjectSet, answer: Answer, start: float, end: float, label: str, live: bool = False
) -> str:
    """``; closest: 2 of 3 pods Ready, 12.0 s after cut`` for an answer of ``within`` that was never true, or "".

    Also "" while a run is ``live``: the verdict of the finished run has it.
    """
    if live or answer.status is not Status.VIOLATED or answer.longest_run is not None or answer.late_span:
        return ""
    states = _states(subjects, start, end)
    best = min(states, key=lambda state: state.distance, default=None)
    if best is None or best.distance >= states[-1].distance:
        return ""  # the state at the deadline is already described
    return f"; closest: {best.text}, {format_since(best.t, start, label)}"


def phrase_held(subjects: SubjectSet, signal: Signal, word: str, start: float, end: float, label: str) -> str:
    """Describe a ``never`` or ``always`` that held; a number of subjects, where it was nearest to its limit."""
    stated = "never observed" if word == "never" else "true the whole time"
    until = format_since(end, start, label)
    states = _states(subjects, start, end) if subjects.quantifier is Quantifier.COUNT and word == "always" else []
    if tightest := max(states, key=lambda state: state.distance, default=None):
        return (
            f"{stated} until {until}; closest to the limit: {tightest.text}, {format_since(tightest.t, start, label)}"
        )
    return f"{stated} until {until} ({format_since(start, start, label)}: {signal.at(start).observation})"


def _states(subjects: SubjectSet, start: float, end: float) -> list[State]:
    """The states in [start, end]; the first one may be older than ``start``."""
    subjects, is_open = subjects.one_by_one(), subjects.counted is not None
    found: list[State] = []
    for change, tally in tallies(subjects):
        if change.t > end:
            break
        state = State(max(change.t, start), _distance(tally), _describe(tally, change, is_open))
        if found and found[-1].t == state.t:
            found.pop()
        found.append(state)
    return found


def _distance(tally: Tally) -> float:
    """The subjects' distance from the demanded state. For a number in its range, how near it is to the limits."""
    subjects, true = tally.subjects, tally.number[True]
    if subjects.quantifier is Quantifier.NONE:
        return true
    if subjects.quantifier is Quantifier.COUNT:
        limits = [] if subjects.most is None else [true - subjects.most]
        return max([subjects.least - true, *limits] if subjects.least or not limits else limits)
    near = [_nearness(subjects, sample) for sample in tally.current]
    if subjects.quantifier is Quantifier.ANY:
        return 1 - max(near, default=0.0)
    return tally.size - sum(weight * value for weight, value in zip(tally.weights, near, strict=True))


def _nearness(subjects: SubjectSet, sample: Sample) -> float:
    if sample.value or sample.value is None or subjects.nearness is None:
        return float(bool(sample.value))
    return subjects.nearness(sample.observation)


def _describe(tally: Tally, change: Sample, is_open: bool) -> str:
    if is_open:
        return f"{tally.number[True]} {tally.subjects.unit or 'pods match'}"
    return tally.count(tally.number[True]) if tally.size > 1 else tally.sample(change).observation
