"""Pages that are generated from commands and actions are current."""

from __future__ import annotations

from pathlib import Path

from chaos.core.errors import Exit
from tools import action_pages
from tools.command_pages import MEANING, PAGE, page

ROOT = Path(__file__).parents[2]


def test_they_are_current() -> None:
    pages = action_pages.pages()
    stale = [p.name for p, text in pages.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    assert not stale, "run `python tools/action_pages.py`"
    assert set((ROOT / "docs" / "actions").glob("*.md")) == {p for p in pages if p.parent == ROOT / "docs" / "actions"}


def test_it_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python tools/command_pages.py`"


def test_it_has_every_exit_code() -> None:
    assert set(MEANING) == set(Exit)
