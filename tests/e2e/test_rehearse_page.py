"""docs/rehearse.md: the worked example runs, and prints what the page shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from chaos.cluster.snapshot.whatif.changes import CHANGES
from tests.kit.processes import ROOT, WALL, nodefall
from tests.kit.tutorial import blocks, commands, is_alike, run

PAGE = (ROOT / "docs" / "rehearse.md").read_text(encoding="utf-8")
EXAMPLE = PAGE[PAGE.index("## Three web replicas") : PAGE.index("## What a rehearsal reports")]


@pytest.mark.lab
@pytest.mark.timeout(4 * WALL)
def test_the_worked_example(tmp_path: Path) -> None:
    for name, text in zip(("shop.yaml", "node-lost.yaml"), blocks(EXAMPLE, "yaml"), strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    try:
        for command in commands(EXAMPLE):
            code, printed = run(command, tmp_path)
            assert is_alike(command.output, printed), f"{shlex.join(command.argv)}\nprinted:\n{printed}"
            is_violated = "rehearse" in command.argv and "--what-if" not in command.argv
            assert code == (1 if is_violated else 0)
    finally:
        nodefall("lab", "down", "--all", cwd=tmp_path)
    pages = {path.name for path in (tmp_path / "rehearsal").iterdir()}
    assert pages == {"rehearsal.html", "rehearsal.md", "rehearsal.json"}


def test_every_key_of_what_if_is_on_the_page() -> None:
    for kind in CHANGES.values():
        syntax = kind.syntax.replace("|", r"\|")
        assert f"| `{kind.key}={syntax}` | {kind.summary} |" in PAGE
