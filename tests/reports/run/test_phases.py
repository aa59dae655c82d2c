"""Phase table of steps on several nodes: armed, fired, began, returned, proven."""

from __future__ import annotations

import msgspec
import pytest

from chaos.core.action import ProofStatus
from chaos.core.result import Phases, RunResult, StepResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.reports.run import html, json_, markdown


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
    assert phases == {"armed": 99.5, "fired": 100.001, "began": 100.012, "proven": 102.0}
