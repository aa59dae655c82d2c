"""docs/actions/, the table in docs/actions.md, README.md and the index of actions say what the code says."""

from __future__ import annotations

from pathlib import Path

from tools import action_pages

ROOT = Path(__file__).parents[2]


def test_they_are_current() -> None:
    pages = action_pages.pages()
    stale = [p.name for p, text in pages.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    assert not stale, "run `python tools/action_pages.py`"
    assert set((ROOT / "docs" / "actions").glob("*.md")) == {p for p in pages if p.parent == ROOT / "docs" / "actions"}
