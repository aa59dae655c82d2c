"""Temporal operators: tables, then properties of every signal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.recording import BlindWindow
from chaos.core.signal import Sample, Signal
from chaos.core.verdict import Status
from chaos.verdicts.judge.temporal import Answer, always, first_runs, never, settles, within

HELD, VIOLATED, INCONCLUSIVE, PENDING = Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE, Status.PENDING
VALUES = {"T": True, "F": False, "?": None}
FAR = 1000.0


def signal(text: str) -> Signal:
    """``F T12 ?20``: false from the beginning, true from 12, unknown from 20."""
    first, *rest = text.split()
    samples = [Sample(float("-inf"), VALUES[first], None, first)]
    return Signal((*samples, *(Sample(float(word[1:]), VALUES[word[0]], None, word) for word in rest)))


@pytest.mark.parametrize(
    ("what", "text", "status", "at"),
    [
        ("true in time", "F T15", HELD, 15),
        ("already true at the anchor", "T", HELD, 10),
        ("true at the last moment", "F T20", HELD, 20),
        ("too late", "F T20.1", VIOLATED, 20),
        ("too early and gone", "T F9", VIOLATED, 20),
        ("never", "F", VIOLATED, 20),
        ("vanished again", "F T12 F14", HELD, 12),
        ("blind over the deadline", "F ?18 T25", INCONCLUSIVE, 18),
        ("blind, then true in time", "F ?12 T15", HELD, 15),
        ("blind, then false", "F ?12 F15", INCONCLUSIVE, 12),
        ("nothing seen", "?", INCONCLUSIVE, 10),
        ("blind before the anchor only", "? F10", VIOLATED, 20),
    ],
)
def test_within(what: str, text: str, status: Status, at: float) -> None:
    answer = within(signal(text), 10, 20, 0, FAR)
    assert (answer.status, answer.at) == (status, at), what


@pytest.mark.parametrize(
    ("what", "text", "status"),
    [
        ("long enough", "F T15 F25", HELD),
        ("exactly long enough", "F T15 F20", HELD),
        ("vanished again", "F T15 F19", VIOLATED),
        ("true again, late but in time", "F T12 F13 T20", HELD),
        ("second time too late", "F T12 F13 T21", VIOLATED),
        ("blind while it should stay", "F T15 ?17 T18 F22", INCONCLUSIVE),
        ("blind, but too short to help", "F T15 F16 ?17 F18", VIOLATED),
        ("never", "F", VIOLATED),
    ],
)
def test_within_and_hold_for_5(what: str, text: str, status: Status) -> None:
    assert within(signal(text), 10, 20, 5, FAR).status is status, what


def test_late_truth_is_reported() -> None:
    answer = within(signal("F T32.3"), 10, 20, 0, FAR)
    assert answer.late_span is not None
    assert answer.late_span.start == 32.3


@pytest.mark.parametrize(
    ("what", "text", "status", "at"),
    [
        ("throughout", "T", HELD, 20),
        ("until just before the end", "T F20", HELD, 20),
        ("broken", "T F15 T16", VIOLATED, 15),
        ("false only before", "F T10", HELD, 20),
        ("false only after", "T F21", HELD, 20),
        ("blind inside", "T ?15 T16", INCONCLUSIVE, 15),
        ("blind, and broken later", "T ?12 T13 F18", VIOLATED, 18),
        ("blind over the end", "T ?19", INCONCLUSIVE, 19),
        ("blind after the end", "T ?20", HELD, 20),
    ],
)
def test_always(what: str, text: str, status: Status, at: float) -> None:
    answer = always(signal(text), 10, 20, FAR)
    assert (answer.status, answer.at) == (status, at), what


@pytest.mark.parametrize(
    ("what", "text", "status"),
    [
        ("never", "F", HELD),
        ("too early", "T F10", HELD),
        ("after the end", "F T20", HELD),
        ("once", "F T15 F15.1", VIOLATED),
        ("at the anchor", "F T10 F11", VIOLATED),
        ("blind inside", "F ?15 F16", INCONCLUSIVE),
        ("nothing seen", "?", INCONCLUSIVE),
    ],
)
def test_never(what: str, text: str, status: Status) -> None:
    assert never(signal(text), 10, 20, FAR).status is status, what


@pytest.mark.parametrize(
    ("what", "text", "horizon", "status", "at"),
    [
        ("still true at the end", "T F11 T15", FAR, HELD, 15),
        ("lost again", "F T12 F19", FAR, VIOLATED, 20),
        ("too late", "F T21", FAR, VIOLATED, 20),
        ("true, and watched no longer", "F T12", 14, HELD, 12),
        ("not true, and watched no longer", "F", 14, PENDING, 14),
        ("blind at the end", "F T12 ?19", FAR, INCONCLUSIVE, 20),
        ("nothing known", "F", 5, PENDING, 10),
    ],
)
def test_settles(what: str, text: str, horizon: float, status: Status, at: float) -> None:
    answer = settles(signal(text), 10, 20, horizon)
    assert (answer.status, answer.at) == (status, at), what


@pytest.mark.parametrize(
    ("text", "horizon", "by_within", "by_always", "by_never"),
    [
        ("F T15", 12, PENDING, VIOLATED, PENDING),
        ("F T11", 12, HELD, VIOLATED, VIOLATED),
        ("T F11", 12, HELD, VIOLATED, VIOLATED),
        ("T", 12, HELD, PENDING, VIOLATED),
        ("F", 19.9, PENDING, VIOLATED, PENDING),
        ("? F12", 19.9, PENDING, VIOLATED, PENDING),
        ("F", 9, PENDING, PENDING, PENDING),
    ],
)
def test_before_the_deadline(text: str, horizon: float, by_within: Status, by_always: Status, by_never: Status) -> None:
    made = signal(text)
    assert within(made, 10, 20, 0, horizon).status is by_within
    assert always(made, 10, 20, horizon).status is by_always
    assert never(made, 10, 20, horizon).status is by_never


@pytest.mark.parametrize(
    ("text", "expected"),
    [("F T12", (12, 12)), ("F ?11 T12", (11, 12)), ("F ?11 F12", (11, None)), ("F", (None, None)), ("T", (10, 10))],
)
def test_first_truth(text: str, expected: tuple[float | None, float | None]) -> None:
    possible, certain = first_runs(signal(text), 10, FAR)
    assert (possible and max(possible.lo, 10), certain and max(certain.hi, 10)) == expected


TIMES = st.integers(0, 40).map(float)
SIGNALS = st.lists(st.tuples(TIMES, st.sampled_from([True, False, None])), max_size=8).map(
    lambda pairs: Signal(
        (
            Sample(float("-inf"), False, None, ""),
            *(Sample(t, value, None, "") for t, value in sorted(dict(pairs).items())),
        )
    )
)
BLINDS = st.tuples(TIMES, st.one_of(st.none(), TIMES)).map(
    lambda pair: BlindWindow(pair[0], None if pair[1] is None else max(pair[0], pair[1]), "cut", "nodes")
)
WORDS = st.sampled_from(["within", "within-for", "always", "never", "settled"])


def apply(word: str, made: Signal, start: float, end: float, horizon: float) -> Answer:
    if word == "within":
        return within(made, start, end, 0, horizon)
    if word == "within-for":
        return within(made, start, end, 3, horizon)
    return {"always": always, "never": never, "settled": settles}[word](made, start, end, horizon)


@given(WORDS, SIGNALS, BLINDS, TIMES, TIMES)
def test_blind_window_never_reverses_an_answer(
    word: str, made: Signal, blind: BlindWindow, start: float, length: float
) -> None:
    clear = apply(word, made, start, start + length, FAR).status
    masked = apply(word, made.mask([blind]), start, start + length, FAR).status
    assert masked in (clear, INCONCLUSIVE)


@given(WORDS.filter(lambda word: word != "settled"), SIGNALS, TIMES, TIMES, TIMES, TIMES)
def test_decided_answers_never_change(
    word: str, made: Signal, start: float, length: float, horizon: float, more: float
) -> None:
    now = apply(word, made, start, start + length, horizon).status
    later = apply(word, made, start, start + length, horizon + more).status
    assert now in (PENDING, later)


@given(SIGNALS, TIMES, TIMES)
def test_never_is_the_negation_of_within(made: Signal, start: float, length: float) -> None:
    """Except at the last moment: within includes its deadline, never excludes its end."""
    inside = within(made, start, start + length - 0.5, 0, FAR).status
    if length >= 1 and inside is HELD:
        assert never(made, start, start + length, FAR).status is VIOLATED
