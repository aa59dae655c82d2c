"""Durations that verdicts measured, and phases of steps."""

from __future__ import annotations

import msgspec
import pytest

from chaos.core.action import ProofStatus
from chaos.core.moments import rfc3339
from chaos.core.result import Phases, RunResult, StepResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run import html, json_, markdown
from chaos.reports.run.outline import Duration, measured_duration

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


def result(*nodes: str) -> RunResult:
    steps = tuple(
        StepResult(
            "off", "poweroff", node, 100.0, 100.25, "answered", "systemctl poweroff", ProofStatus.PROVEN, "off",
            phases=Phases(99.5, 100.001, 100.012, 102.0),
        )
        for node in nodes
    )  # fmt: skip
    return RunResult(1, "r", "e", "t", Status.HELD, 0, "held", False, "1.36", "u", 90.0, 200.0, {}, steps, (), ())


@pytest.mark.parametrize("cell", ["-0.500s", "+0.001s", "+0.012s", "+0.250s", "+2.000s", "n2"])
def test_step_on_several_nodes_has_a_table(cell: str) -> None:
    many = result("n1", "n2")
    row = next(line for line in markdown.render(many, Timeline()).splitlines() if line.startswith("| off | n2"))
    assert cell in row.replace("\\", "")
    assert f"<td>{cell}</td>" in html.render(many, Timeline())


def test_step_on_one_node_has_phases_only_in_json() -> None:
    one = result("n1")
    assert "began on the host" not in markdown.render(one, Timeline())
    assert "Began on the host" not in html.render(one, Timeline())
    phases = msgspec.json.decode(json_.render(one, Timeline()))["steps"][0]["phases"]
    times = {"armed": 99.5, "fired": 100.001, "began": 100.012, "proven": 102.0}
    assert phases == times | {f"{name}_rfc3339": rfc3339(t) for name, t in times.items()}
