"""Pages with worked examples: each command runs, and prints what the page shows."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from chaos.cluster.snapshot.whatif.changes import CHANGES
from tests.kit.processes import ROOT, WALL, nodefall
from tests.kit.tutorial import Command, blocks, commands, is_alike, normalize, run

TUTORIAL_PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
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
    first, *edits = blocks(TUTORIAL_PAGE, "yaml")
    found = list(commands(TUTORIAL_PAGE))
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


REHEARSE_PAGE = (ROOT / "docs" / "rehearse.md").read_text(encoding="utf-8")
EXAMPLE = REHEARSE_PAGE[
    REHEARSE_PAGE.index("## Three web replicas") : REHEARSE_PAGE.index("## What a rehearsal reports")
]


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
        assert f"| `{kind.key}={syntax}` | {kind.summary} |" in REHEARSE_PAGE
