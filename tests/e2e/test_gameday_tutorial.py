"""The tutorial of docs/gameday.md: each command prints what the page shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kit.processes import ROOT, WALL, nodefall
from tests.kit.tutorial import Command, blocks, commands, is_alike, normalize, run

HEADING, END = "## A weekly game day in ten minutes", "## The document"
TUTORIAL = (ROOT / "docs" / "gameday.md").read_text(encoding="utf-8").partition(HEADING)[2].partition(END)[0]


@pytest.mark.parametrize(
    ("shown", "printed", "alike"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\nb", "a\nc", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...", "a", True),
        ("...\nd", "a\nb\nc", False),
        ("a", "a\nb", False),
        ("at 2026-12-01T10:00:00Z", "at 2027-01-01T10:00:00+01:00", True),
        ("run cordon-1a2b3c took 1m2s", "run cordon-ffffff took 59s", True),
        ("2 held", "1 held", False),
        ("held", "violated", False),
        ("https://127.0.0.1:1 x", "https://127.0.0.1:65000   x", True),
    ],
)
def test_comparison(shown: str, printed: str, alike: bool) -> None:
    assert is_alike(shown, printed) is alike


def test_commands_are_found() -> None:
    page = "x\n```console\n$ nodefall a b\none\ntwo\n$ nodefall c\n```\n"
    assert list(commands(page)) == [Command(("nodefall", "a", "b"), "one\ntwo\n"), Command(("nodefall", "c"), "")]


@pytest.mark.lab
@pytest.mark.timeout(4 * WALL)
@pytest.mark.nightly
def test_the_tutorial_of_the_page(tmp_path: Path) -> None:
    for name in ("experiments", "hosts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for path in tmp_path.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    whole, addition = blocks(TUTORIAL, "yaml")
    file = tmp_path / "weekly.yaml"
    found = list(commands(TUTORIAL))
    assert len(found) >= 8
    file.write_text(whole, encoding="utf-8")
    file.chmod(0o644)
    try:
        for command in found:
            if "--at" in command.argv:  # after the change that the page asks for
                file.write_text(whole.replace("spec:\n", f"spec:\n{addition}"), encoding="utf-8")
            code, printed = run(command, tmp_path)
            assert code == 0, printed
            shown = "\n".join(normalize(command.output))
            assert is_alike(command.output, printed), f"{command.argv}\nshown:\n{shown}\nprinted:\n{printed}"
    finally:
        nodefall("lab", "down", "--all", cwd=tmp_path)
