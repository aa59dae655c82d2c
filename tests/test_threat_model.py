"""docs/security.md: every threat has a guard, and every guard a test that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
STRIDE = (
    "Spoofing",
    "Tampering",
    "Repudiation",
    "Information disclosure",
    "Denial of service",
    "Elevation of privilege",
)
ACCEPTED = "Accepted risks"
ATTACKERS = re.compile(r"^- \*\*([a-z ]+)\*\*: ", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
Row = list[str]


def rows(heading: str) -> list[Row]:
    """The cells of the table below a heading, without its head."""
    _, _, rest = PAGE.partition(f"\n### {heading}\n")
    section = re.split(r"\n##+ ", rest, maxsplit=1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


THREATS = [(heading, row) for heading in STRIDE for row in rows(heading)]
TESTS = sorted(set(NAMED.findall(PAGE)))


@cache
def functions(path: Path) -> set[str]:
    """Tests of a module, those of its classes included; none if there is no such module."""
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "test"), TESTS, ids=lambda part: part)
def test_named_tests_exist(file: str, test: str) -> None:
    assert test in functions(ROOT / file), f"docs/security.md names {file}::{test}"


@pytest.mark.parametrize("heading", [*STRIDE, ACCEPTED])
def test_every_kind_of_threat_has_rows(heading: str) -> None:
    assert len(rows(heading)) >= 4


@pytest.mark.parametrize(("heading", "row"), THREATS, ids=lambda part: part if isinstance(part, str) else part[2])
def test_a_threat_has_a_guard_and_a_test(heading: str, row: Row) -> None:
    asset, attackers, way, guard, tests = row
    assert all((asset, way, guard))
    assert set(attackers.split(", ")) <= set(ATTACKERS.findall(PAGE)), heading
    assert NAMED.sub("", tests).replace(", ", "") == "", "the last cell has names of tests only"
    assert NAMED.search(tests)


def test_an_accepted_risk_has_a_reason() -> None:
    for asset, _, way, why in rows(ACCEPTED):
        assert all((asset, way, why)), way
