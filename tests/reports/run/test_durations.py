"""Which verdicts measure a duration."""

from __future__ import annotations

import pytest

from chaos.core.verdict import Status, Verdict
from chaos.reports.run.durations import Duration, measured_duration

HELD, VIOLATED, INCONCLUSIVE = Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE
Case = tuple[str, Status, float | None, float | None, float | None, Duration | None]
CASES: list[Case] = [
    # operator, status, start, at, deadline (in seconds), what is measured
    ("within", HELD, 10, 13, 50, Duration("within", 3, 40)),
    ("within", HELD, 10, 50, 50, Duration("within", 40, 40)),  # at the last moment
    ("within", VIOLATED, 10, 50, 50, Duration("within", 40, 40, is_exceeded=True)),
    ("within", INCONCLUSIVE, 10, 50, 50, None),
    ("within", HELD, 10, 9.999, 50, Duration("within", 0, 40)),
    ("within", VIOLATED, 10, 20, 50, Duration("within", 10, 40, is_exceeded=True)),  # the deadline of one pod of many
    ("never", HELD, 10, 50, 50, None),
    ("never", VIOLATED, 10, 13, 50, Duration("never", 3, 40)),
    ("always", VIOLATED, 10, 13, None, Duration("always", 3, 3)),
    ("always", HELD, 10, 50, 50, None),
    ("", HELD, 10, 10, 10, None),  # a steady state
    ("within", HELD, None, 13, 50, None),
    ("within", HELD, 10, None, 50, None),
    # results of 0.1.0
    ("", HELD, 10, 13, 50, Duration("within", 3, 40)),
    ("", VIOLATED, 10, 50, 50, Duration("within", 40, 40, is_exceeded=True)),
    ("", HELD, 10, 50, 50, None),
    ("", VIOLATED, 10, 13, 50, Duration("never", 3, 40)),
    ("", HELD, 10, 13, None, None),
]


@pytest.mark.parametrize(("operator", "status", "start", "at", "deadline", "expected"), CASES)
def test_what_is_measured(
    operator: str,
    status: Status,
    start: float | None,
    at: float | None,
    deadline: float | None,
    expected: Duration | None,
) -> None:
    verdict = Verdict("n", "pods", status, "b", at=at, start=start, deadline=deadline, operator=operator)
    assert measured_duration(verdict) == expected


def test_an_order_measures_nothing() -> None:
    assert measured_duration(Verdict("n", "order", HELD, "b", at=13, start=10, deadline=50)) is None
