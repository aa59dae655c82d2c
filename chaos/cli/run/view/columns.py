"""Tables of fixed width: which columns fit, and how wide they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

GAP = 2  # cells between two columns


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``rank``: those with the greatest are dropped first, 0 never. ``least``: cells to which it can shrink.

    ``takes_rest``: it shrinks to ``least`` before a column is dropped, and is as wide as there is room.
    """

    title: str
    rank: int = 0
    least: int = 0
    takes_rest: bool = False
    is_right: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Text with a style of rich."""

    text: str
    style: str = ""


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> list[Text]:
    """The head and the rows, as lines of at most ``width`` cells."""
    widest = [
        max(cell_len(column.title), *(cell_len(row[index].text) for row in rows)) if rows else cell_len(column.title)
        for index, column in enumerate(columns)
    ]
    shown = _shown(columns, widest, width)
    widths = _widths(columns, widest, shown, width)
    head = [Cell(column.title, "dim") for column in columns]
    return [_line([(row[i], widths[i], columns[i]) for i in shown]) for row in (head, *rows)]


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, with an ellipsis if something is left out."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def _needed(column: Column, widest: int) -> int:
    return min(widest, column.least) if column.takes_rest else widest


def _shown(columns: Sequence[Column], widest: Sequence[int], width: int) -> list[int]:
    """The places of the columns that fit."""
    shown = list(range(len(columns)))
    while True:
        needed = sum(_needed(columns[i], widest[i]) for i in shown) + GAP * (len(shown) - 1)
        least_important = max(shown, key=lambda i: columns[i].rank)
        if needed <= width or columns[least_important].rank == 0:
            return shown
        shown.remove(least_important)


def _widths(columns: Sequence[Column], widest: Sequence[int], shown: Sequence[int], width: int) -> dict[int, int]:
    """The width of each shown column; what is left over goes to those that take the rest, the first ones first."""
    widths = {i: _needed(columns[i], widest[i]) for i in shown}
    rest = width - sum(widths.values()) - GAP * (len(shown) - 1)
    growing = [i for i in shown if columns[i].takes_rest]
    for place, i in enumerate(growing):
        wanted_by_others = sum(widest[j] - widths[j] for j in growing[place + 1 :])
        share = max(rest // 2, rest - wanted_by_others)
        grown = max(0, min(widest[i] - widths[i], share))
        widths[i] += grown
        rest -= grown
    for i in sorted(shown, key=lambda i: -widths[i]):  # too narrow for what is never dropped
        cut = min(widths[i] - 1, -rest) if rest < 0 else 0
        widths[i] -= max(0, cut)
        rest += max(0, cut)
    return widths


def _line(cells: Sequence[tuple[Cell, int, Column]]) -> Text:
    line = Text(no_wrap=True)
    for place, (cell, width, column) in enumerate(cells):
        text = shorten(cell.text, width)
        padding = " " * (width - cell_len(text))
        is_last = place == len(cells) - 1
        padded = padding + text if column.is_right else text if is_last else text + padding
        line.append(padded, cell.style or None)
        if not is_last:
            line.append(" " * GAP)
    return line
