"""docs/tutorial.md: each command is run on one lab, and prints what the page shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.kit.processes import ROOT, WALL, nodefall
from tests.kit.tutorial import blocks, commands, is_alike, normalize, run

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
VIOLATED = 1


def replace(file: Path, old: str, new: str) -> str:
    """Replace an expectation in the experiment as the page asks for; the new one."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    return new


@pytest.mark.lab
@pytest.mark.timeout(4 * WALL)
def test_the_tutorial(tmp_path: Path) -> None:
    first, *edits = blocks(PAGE, "yaml")
    found = list(commands(PAGE))
    assert [command.argv[1] for command in found].count("judge") == len(edits) == 2
    file, expectation = tmp_path / "shop.yaml", first
    try:
        for command in found:
            if command.argv[1] == "judge":
                expectation = replace(file, expectation, edits.pop(0))
            code, printed = run(command, tmp_path)
            shown = "\n".join(normalize(command.output))
            assert is_alike(command.output, printed), (
                f"{shlex.join(command.argv)}\nshown:\n{shown}\nprinted:\n{printed}"
            )
            assert code == (VIOLATED if "1 of 4 violated" in command.output else 0)
    finally:
        nodefall("lab", "down", "--all", cwd=tmp_path)
