"""docs/commands.md is what the commands say."""

from __future__ import annotations

from chaos.core.errors import Exit
from tools.command_pages import MEANING, PAGE, page


def test_it_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python tools/command_pages.py`"


def test_it_has_every_exit_code() -> None:
    assert set(MEANING) == set(Exit)
