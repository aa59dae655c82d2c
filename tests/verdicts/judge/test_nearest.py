"""The state nearest to what was demanded, for each quantifier, and the number nearest to its limit."""

from __future__ import annotations

import math

import pytest

from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.verdict import Status
from chaos.verdicts.judge.nearest import describe_nearest, phrase_held
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.temporal import within

SEQ = iter(range(1, 10_000))


def subject(name: str, *changes: tuple[float, bool]) -> Subject:
    samples = (Sample(-math.inf, False, None, "Running, not ready"),)
    later = (Sample(t, v, next(SEQ), f"Running, {'' if v else 'not '}ready") for t, v in changes)
    return Subject(name, Signal((*samples, *later)))


def pods(quantifier: Quantifier = Quantifier.EACH, least: int = 0, most: int | None = None) -> SubjectSet:
    """Of three pods one is ready from 3 to 8, another from 5 to 7, the last never."""
    found = (subject("a", (3, True), (8, False)), subject("b", (5, True), (7, False)), subject("c"))
    return SubjectSet("", found, quantifier, least, most, unit="pods Ready")


def nearest(subjects: SubjectSet, deadline: float = 10.0) -> str:
    answer = within(combine(subjects), 0.0, deadline, 0.0, 20.0)
    assert answer.status is Status.VIOLATED
    assert describe_nearest(subjects, answer, 0.0, deadline, "cut", live=True) == ""
    return describe_nearest(subjects, answer, 0.0, deadline, "cut")


@pytest.mark.parametrize(
    ("subjects", "deadline", "expected"),
    [
        (pods(), 10.0, "; closest: 2 of 3 pods Ready, 5.0 s after cut"),
        (pods(Quantifier.COUNT, least=3), 10.0, "; closest: 2 of 3 pods Ready, 5.0 s after cut"),
        (pods(Quantifier.COUNT, least=3), 4.0, ""),  # one is ready at the deadline, which the reason says
        (pods(), 2.0, ""),
        (SubjectSet("", (subject("a"),), nearness=lambda _: 0.5), 10.0, ""),
    ],
)
def test_within(subjects: SubjectSet, deadline: float, expected: str) -> None:
    assert nearest(subjects, deadline) == expected


def test_none_has_the_fewest_matches() -> None:
    always = (subject("a", (0, True)), subject("b", (0, True), (4, False), (6, True)))
    assert nearest(SubjectSet("", always, Quantifier.NONE)) == "; closest: 1 of 2, 4.0 s after cut"


def test_one_subject_by_its_share() -> None:
    samples = (Sample(t, False, next(SEQ), f"{n} of 3 pods are available") for t, n in ((0, 0), (4, 2), (6, 1)))
    found = SubjectSet("", (Subject("web", Signal(tuple(samples))),), nearness=lambda text: int(text[0]) / 3)
    assert nearest(found) == "; closest: web: 2 of 3 pods are available, 4.0 s after cut"


@pytest.mark.parametrize(
    ("subjects", "expected"),
    [
        (pods(Quantifier.COUNT, most=2), "closest to the limit: 2 of 3 pods Ready, 5.0 s after cut"),
        (pods(Quantifier.COUNT, least=0), "closest to the limit: 0 of 3 pods Ready, at cut"),
        (pods(), "true the whole time until 10.0 s after cut (at cut: 3 of 3, for example a: Running, not ready)"),
    ],
)
def test_held(subjects: SubjectSet, expected: str) -> None:
    text = phrase_held(subjects, combine(subjects), "always", 0.0, 10.0, "cut")
    assert text.startswith("true the whole time until 10.0 s after cut")
    assert text.endswith(expected)
