"""Quantifiers: the combined signal against the decision at each moment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.verdicts.judge.quantifiers import combine, decide

TIMES = st.integers(0, 10).map(float)
VALUES = st.sampled_from([True, False, None])
SIGNALS = st.dictionaries(TIMES, VALUES, max_size=4).map(
    lambda values: Signal(tuple(Sample(t, v, None, str(v)) for t, v in sorted(values.items())))
)


@given(st.lists(SIGNALS, max_size=4), st.sampled_from(list(Quantifier)), st.integers(0, 3), st.integers(0, 3), TIMES)
def test_combined_signal_equals_decision_at_every_moment(
    signals: list[Signal], quantifier: Quantifier, least: int, more: int, t: float
) -> None:
    subjects = SubjectSet(
        "x", tuple(Subject(str(i), s) for i, s in enumerate(signals)), quantifier, least, least + more
    )
    values = [signal.at(t).value for signal in signals]
    expected = decide(subjects, values.count(True), values.count(False), values.count(None))
    assert combine(subjects).at(t).value is expected


@given(
    st.sampled_from(list(Quantifier)), st.lists(VALUES, min_size=1, max_size=5), st.integers(0, 4), st.integers(0, 4)
)
def test_unknown_subjects_are_decided_only_if_irrelevant(
    quantifier: Quantifier, values: list[bool | None], least: int, more: int
) -> None:
    subjects = SubjectSet("x", (), quantifier, least, least + more)

    def decision(known: list[bool | None]) -> bool | None:
        return decide(subjects, known.count(True), known.count(False), known.count(None))

    worlds: list[list[bool | None]] = [[]]
    for value in values:
        worlds = [[*w, v] for w in worlds for v in ((True, False) if value is None else (value,))]
    decisions = {decision(world) for world in worlds}
    assert decision(values) is (decisions.pop() if len(decisions) == 1 else None)


@pytest.mark.parametrize(
    ("quantifier", "expected"),
    [(Quantifier.EACH, None), (Quantifier.ANY, None), (Quantifier.NONE, None), (Quantifier.COUNT, False)],
)
def test_empty_set(quantifier: Quantifier, expected: bool | None) -> None:
    assert combine(SubjectSet("x", (), quantifier, 1)).at(0).value is expected


def test_observation_names_the_subject() -> None:
    good, bad = Signal((Sample(0, True, 1, "fine"),)), Signal((Sample(0, False, 2, "broken"),))
    subjects = SubjectSet("x", (Subject("a", good), Subject("b", bad), Subject("c", bad)))
    sample = combine(subjects).at(0)
    assert (sample.observation, sample.seq) == ("2 of 3, for example b: broken", 2)
