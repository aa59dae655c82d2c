"""Judging over intervals: tables, then every history that fits, enumerated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.recording import BlindWindow
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.verdict import Status
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.temporal import Answer, always, never, runs_of, settles, value_near, within

HELD, VIOLATED, INCONCLUSIVE, PENDING = Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE, Status.PENDING
VALUES = {"T": True, "F": False, "?": None}
FAR = 1000.0
STEP = 0.25  # of the times of a history


def signal(text: str) -> Signal:
    """``F T8-12 ?20 L30``: false at first, true since a moment in (8, 12], unknown from 20, none received after 30."""
    first, *rest = text.split()
    samples = [Sample(float("-inf"), VALUES[first], None, first)]
    for order, word in enumerate(rest, 1):
        lo, _, hi = word[1:].partition("-")
        if word[0] == "L":
            return Signal(tuple(samples)).mask_lag(float(lo), "pods")
        samples.append(Sample(float(hi or lo), VALUES[word[0]], order, word, float(lo), order if hi else 0))
    return Signal(tuple(samples))


@pytest.mark.parametrize(
    ("what", "text", "status"),
    [
        ("in time whenever it was", "F T5-19", HELD),
        ("before or after the deadline", "F T15-25", INCONCLUSIVE),
        ("too late whenever it was", "F T20-25", VIOLATED),
        ("true for a moment, whenever that was", "F T11-19 F11-19", HELD),
        ("over before the start, or not", "F T5-9 F8-12", INCONCLUSIVE),
        ("over before the start", "F T5-9 F8-10", VIOLATED),
        ("certainly still true at the start", "F T5-9 F10-12", HELD),
        ("received in time, current only until then", "F T15-19 L18", HELD),
        ("not received yet", "F L18", PENDING),
        ("received after what is known, and perhaps over at the start", "F T5-19 L6", PENDING),
        ("current beyond the deadline", "F L21", VIOLATED),
    ],
)
def test_within(what: str, text: str, status: Status) -> None:
    assert within(signal(text), 10, 20, 0, FAR).status is status, what


@pytest.mark.parametrize(
    ("what", "text", "status"),
    [
        ("long enough at the shortest", "F T11-13 F18-19", HELD),
        ("perhaps too short", "F T11-15 F18-19", INCONCLUSIVE),
        ("too short at the longest", "F T11-13 F14-15", VIOLATED),
        ("long enough, but perhaps too late", "F T19-21 F40", INCONCLUSIVE),
    ],
)
def test_within_and_hold_for_5(what: str, text: str, status: Status) -> None:
    assert within(signal(text), 10, 20, 5, FAR).status is status, what


@pytest.mark.parametrize(
    ("what", "text", "status"),
    [
        ("broken for a moment, whenever that was", "T F11-19 T11-19", VIOLATED),
        ("broken before the end or after it", "T F19-21", INCONCLUSIVE),
        ("broken after the end", "T F20-21", HELD),
        ("broken before the start or after it", "T F5-9 T9-11", INCONCLUSIVE),
        ("not received yet", "T L19", PENDING),
        ("all received", "T L20", HELD),
    ],
)
def test_always(what: str, text: str, status: Status) -> None:
    assert always(signal(text), 10, 20, FAR).status is status, what


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("T F12-14 T15-18", HELD),
        ("T F12-14 T19-21", INCONCLUSIVE),
        ("T F12-14 T15-18 L19", PENDING),
        ("T F19-21", INCONCLUSIVE),
        ("T F12-14", VIOLATED),
    ],
)
def test_settles(text: str, status: Status) -> None:
    assert settles(signal(text), 10, 20, FAR).status is status


def test_before_the_deadline_what_is_known_settles() -> None:
    assert settles(signal("F T12 L14"), 10, 20, 15).status is HELD
    assert settles(signal("T L9"), 10, 20, 15).status is PENDING, "nothing is known of the time after the fault"


@pytest.mark.parametrize(
    ("text", "lookback", "value"),
    [
        ("F T8-12", 0, None),
        ("F T8-12", 2, None),
        ("F T8-12", 1.9, None),
        ("F T4-6 L9", 2, True),
        ("F T4-6 L9", 0.5, None),
        ("F ?9", 5, None),
        ("T F8-12 T9-11", 2, None),
    ],
)
def test_the_state_shortly_before_will_do(text: str, lookback: float, value: bool | None) -> None:
    assert value_near(signal(text), 10, lookback).value is value


def test_other_evidence_inside_an_interval_makes_it_unknown() -> None:
    runs = runs_of(signal("F T5 F3-8"))
    assert [(run.value, run.lo, run.hi) for run in runs[1:]] == [(None, 3, 3), (False, 8, 8)]


def test_an_undecided_answer_names_its_doubt() -> None:
    answer = within(signal("F T15-25"), 10, 20, 0, FAR)
    assert answer.doubt is not None
    assert (answer.doubt.lo, answer.doubt.hi) == (15, 25)


CHANGES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 8), st.integers(0, 3)),
    min_size=1,
    max_size=3,
)
WORDS = st.sampled_from(["within", "within-for", "always", "never", "settled"])


def made(changes: list[tuple[bool, int, int]]) -> Signal:
    """Changes with intervals whose bounds do not fall, as those of one watch."""
    samples = [Sample(float("-inf"), False, None, "first")]
    lo = hi = 0
    for order, (value, start, length) in enumerate(changes, 1):
        lo = max(lo, start)
        hi = max(hi, lo + length + 1)
        samples.append(Sample(float(hi), value, order, f"{order}", float(lo), order))
    return Signal(tuple(samples))


def histories(uncertain: Signal) -> Iterator[Signal]:
    """Every choice of times, in steps, that keeps the order."""
    first, *rest = uncertain.samples
    spans = [[s.lo + STEP * n for n in range(1, int((s.t - s.lo) / STEP) + 1)] for s in rest]
    for times in itertools.product(*spans):
        if all(one < two for one, two in itertools.pairwise(times)):
            exact = (Sample(t, s.value, s.seq, s.observation) for t, s in zip(times, rest, strict=True))
            yield Signal((first, *exact))


def apply(word: str, one: Signal, start: float, end: float) -> Answer:
    if word == "within":
        return within(one, start, end, 0, FAR)
    if word == "within-for":
        return within(one, start, end, 2, FAR)
    return {"always": always, "never": never, "settled": settles}[word](one, start, end, FAR)


@settings(max_examples=150, deadline=None)
@given(WORDS, CHANGES, st.integers(0, 8), st.integers(1, 6))
def test_an_answer_is_right_in_every_history_and_open_only_if_they_differ(
    word: str, changes: list[tuple[bool, int, int]], start: int, length: int
) -> None:
    alternating = [(index % 2 == 0, at, wide) for index, (_, at, wide) in enumerate(changes)]
    uncertain, end = made(alternating), start + length
    found = {apply(word, one, start, end).status for one in histories(uncertain)}
    status = apply(word, uncertain, start, end).status
    if status in (HELD, VIOLATED):
        assert found == {status}
    else:
        assert len(found) > 1


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([Quantifier.EACH, Quantifier.ANY, Quantifier.NONE, Quantifier.COUNT]),
    WORDS,
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 6), st.integers(0, 2)), min_size=2, max_size=3),
    st.integers(0, 6),
    st.integers(1, 5),
)
def test_many_signals_are_right_in_every_history(
    quantifier: Quantifier, word: str, changes: list[tuple[bool, bool, int, int]], start: int, length: int
) -> None:
    """The changes of two objects, in one order: that of their resourceVersions."""
    together = made([(value, at, wide) for _, value, at, wide in changes])
    owners = [owner for owner, _, _, _ in changes]
    found = {
        apply(word, combined(quantifier, one, owners), start, start + length).status for one in histories(together)
    }
    status = apply(word, combined(quantifier, together, owners), start, start + length).status
    assert status is INCONCLUSIVE or found == {status}


def combined(quantifier: Quantifier, together: Signal, owners: list[bool]) -> Signal:
    first, *rest = together.samples
    parts = [[s for s, owner in zip(rest, owners, strict=True) if owner is mine] for mine in (False, True)]
    subjects = tuple(Subject("", Signal((first, *part))) for part in parts)
    return combine(SubjectSet("", subjects, quantifier, 1, 1))


GAPS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([True, True, False, None]), st.integers(0, 1)),
    max_size=9,
)


@settings(max_examples=500)
@given(GAPS, st.sampled_from([None, 3.0, 8.0, 40.0]))
def test_repetitions_say_nothing_new(gaps: list[tuple[int, int, bool | None, int]], until: float | None) -> None:
    """Heartbeats: the runs, and what is described now, are the same without them."""
    samples, t = [Sample(float("-inf"), None, None, "first")], 1.0
    for order, (pause, width, value, text) in enumerate(gaps, 1):
        lo, t = t + pause, t + pause + width
        samples.append(Sample(t, value, order, f"{value} {text}", lo if width else math.inf, order))
    every, fewer = Signal(tuple(samples)), Signal(tuple(samples)).without_repetitions()
    assert fewer.samples[-1] == every.samples[-1]
    if until is not None:
        every, fewer = every.mask_lag(until, "pods"), fewer.mask_lag(until, "pods")
    assert _shapes(fewer) == _shapes(every)


def _shapes(of: Signal) -> list[tuple[object, ...]]:
    return [(run.value, run.lo, run.hi, run.end_lo, run.end_hi) for run in runs_of(of)]


def test_of_many_heartbeats_few_are_left() -> None:
    beats = [Sample(float(t), True, t, "Ready") for t in range(5)]
    changed = [*beats, Sample(5.0, True, 5, "Ready, cordoned"), *(Sample(float(t), False, t, "gone") for t in (6, 7))]
    assert Signal(tuple(changed)).without_repetitions().samples == (beats[0], *changed[4:])


FIRST = Sample(-math.inf, True, None, "")


def version(t: float, value: bool, earliest: float = math.inf) -> Sample:
    return Sample(t, value, int(t), "", earliest)


@pytest.mark.parametrize(
    ("samples", "end", "expected"),
    [
        ([], 12, [(10, None), (12, True)]),
        ([version(5, False)], 12, [(5, False), (10, None), (12, False)]),
        ([version(11, False)], 12, [(10, None), (12, False)]),
        ([version(11, False)], None, [(10, None)]),
        ([version(11, False, 8)], 12, [(8, None), (12, False)]),
        ([version(11, False, 8)], None, [(8, None)]),
        ([version(15, False)], 12, [(10, None), (12, True), (15, False)]),
        ([version(15, False, 13)], 12, [(10, None), (12, True), (15, False)]),
        ([version(15, False, 11)], 12, [(10, None), (15, False)]),
        ([version(15, False, 8)], 12, [(8, None), (15, False)]),
        ([version(9, False, 5), version(15, True, 6)], 12, [(5, None), (15, True)]),
    ],
)
def test_masked(samples: list[Sample], end: float | None, expected: list[tuple[float, bool | None]]) -> None:
    masked = Signal((FIRST, *samples)).mask([BlindWindow(10, end, "cut", "nodes")])
    assert [(sample.t, sample.value) for sample in masked.samples[1:]] == expected
    if end is not None:
        assert all(sample.lo >= end for sample in masked.samples if sample.t > end)
