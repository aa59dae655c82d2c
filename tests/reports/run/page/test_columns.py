"""Interned strings, columns and packed data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.reports.run.page.columns import Columns, StringTable, pack, unpack


@given(st.lists(st.text(max_size=20)))
def test_strings_are_found_by_their_index_and_stored_once(texts: list[str]) -> None:
    table = StringTable()
    indexes = [table.add(text) for text in texts]
    assert [table.add(text) for text in texts] == indexes
    assert len(set(table.strings)) == len(table.strings)
    assert all(text.isprintable() for text in table.strings)


def test_texts_that_are_shown_alike_are_one_string() -> None:
    table = StringTable()
    assert table.add("a\nb") == table.add("a b")
    assert table.strings == ["a b"]


def test_rows_are_stored_by_column() -> None:
    table = Columns("a", "b")
    assert len(table) == 0
    table.append(1, "x")
    table.append(2, "y")
    assert table == {"a": [1, 2], "b": ["x", "y"]}
    assert len(table) == 2
    with pytest.raises(ValueError, match="zip"):
        table.append(3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(JSON)
def test_packed_value_is_unpacked_and_is_harmless_in_html(value: Any) -> None:
    packed = pack(value)
    assert unpack(packed) == value
    assert not set(packed) & set("<>&'\"\\\n")
    assert pack(value) == packed
