"""Tables: columns that fit, and their widths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from chaos.cli.run.view.tables import Cell, Column, shorten, table

COLUMNS = (
    Column("NAME", least=4, takes_rest=True),
    Column("N", is_right=True),
    Column("WORDS", rank=1, least=6, takes_rest=True),
)
ROWS = [[Cell("worker-1"), Cell("12"), Cell("some words here")], [Cell("w"), Cell("3"), Cell("")]]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (40, ["NAME       N  WORDS", "worker-1  12  some words here", "w          3  "]),
        (22, ["NAME      N  WORDS", "worker…  12  some wor…", "w         3"]),
        (18, ["NAME    N  WORDS", "work…  12  some w…", "w       3"]),
        (14, ["NAME       N", "worker-1  12", "w          3"]),
        (8, ["NAME   N", "wor…  12", "w      3"]),
    ],
)
def test_widths(width: int, lines: list[str]) -> None:
    shown = [line.plain for line in table(COLUMNS, ROWS, width)]
    assert [line.rstrip() for line in shown] == [line.rstrip() for line in lines]


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("ab cd", 4, "ab…"), ("x", 0, "")],
)
def test_shorten(text: str, width: int, short: str) -> None:
    assert shorten(text, width) == short


@given(st.lists(st.lists(st.text(max_size=30), min_size=3, max_size=3), max_size=5), st.integers(10, 80))
def test_no_line_is_too_wide(rows: list[list[str]], width: int) -> None:
    printable = [[Cell(text if text.isprintable() else "?") for text in row] for row in rows]
    assert all(cell_len(line.plain) <= width for line in table(COLUMNS, printable, width))
