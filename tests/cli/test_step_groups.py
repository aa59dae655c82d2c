"""Reports of one step on many nodes, as lines."""

from __future__ import annotations

import pytest

from chaos.cli.run.lines import StepGroups


@pytest.mark.parametrize(
    ("reports", "lines"),
    [
        ([], []),
        ([("stop", "n1", "run x")], ["step stop on n1: run x"]),
        ([("note", "", "x")], ["step note: x"]),
        ([("stop", "n1", "run x"), ("stop", "n2", "run x")], ["step stop on n1, n2: run x"]),
        ([("cut", "n1", "drain n1"), ("cut", "n2", "drain n2")], ["step cut on n1, n2: drain n1 (of 2 alike)"]),
        (
            [("stop", "n1", "run x"), ("stop", "n1", "proven: off"), ("stop", "n2", "run x")],
            ["step stop on n1, n2: run x", "step stop on n1: proven: off"],
        ),
        ([("a", "n1", "x"), ("b", "n2", "x")], ["step a on n1: x", "step b on n2: x"]),
        ([("a", "n1", "x"), ("a", "n2", "y")], ["step a on n1: x", "step a on n2: y"]),
        ([("a", f"n{i}", "x") for i in range(50)], ["step a on n0, n1, n2 and 47 more: x"]),
        ([("a", "n1", "undo: x"), ("a", "n1", "undo: x")], ["step a on n1: undo: x"]),
        ([("a", "n1", "\x1b[2J")], ["step a on n1: \\x1b[2J"]),
    ],
)
def test_lines(reports: list[tuple[str, str, str]], lines: list[str]) -> None:
    groups = StepGroups()
    for report in reports:
        groups.add(*report)
    assert groups.flush() == lines
    assert groups.flush() == []
