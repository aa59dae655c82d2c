"""Escapes of invisible characters."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from chaos.core.text import escape_control

INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text(st.characters()))  # surrogates included
def test_exactly_the_invisible_characters_are_escaped(text: str) -> None:
    escaped = escape_control(text)
    assert not {unicodedata.category(c) for c in escaped} & INVISIBLE
    visible = [c for c in text if unicodedata.category(c) not in INVISIBLE]
    assert len(visible) == len(text) or escaped != text
    if len(visible) == len(text):
        assert escaped == text
