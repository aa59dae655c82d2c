"""The model of the tables of all reports: a column is one entry, and every view renders it.

A table is a tuple of :class:`Column`. Terminals, Markdown and pages show the columns of their view, and the script of a
page gets a description of the others (:func:`describe_columns`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from operator import itemgetter
from typing import Any, Generic, TypeVar

from chaos.core.text import align_columns, count_of, printable

R = TypeVar("R")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#@!$])")
_LINE_START = re.compile(r"^(\d+)([.)])|^([-+=/])")  # a line that begins with a slash is a command to GitLab
_AUTOLINK = re.compile(r"(?i)(?<=www)\.|:(?=//)")
# Renderers look for mentions in the rendered text, where a backslash is gone. Behind what a mention begins with,
# an invisible character ends them: @team, #12, !12, $12, %12, &12, ^12, ~label, GH-12.
_REFERENCE = re.compile(r"(?<=[@#~^])(?=\S)|(?<=[!$%])(?=[\w\"\\])|(?<=&amp;)(?=\d)|(?i:(?<=GH-)(?=\d))")
_ENDS_REFERENCE = "&#8203;"
MAX_COMMENT = 60_000  # bytes: a comment on GitHub holds 65,536 characters, and people write something around a report
MAX_STEP_SUMMARY = 1_000_000  # bytes: GitHub drops the whole summary of a step if it has more than 1 MiB
_LEAST = 400  # bytes that are worth a block which is cut
_CLASSES = ("links", "num", "time")  # shapes of a whole cell


class View(Flag):
    """Where a column is shown. LIVE: the table of a live page. PANEL: the panel next to the timeline."""

    TEXT = auto()
    MARKDOWN = auto()
    HTML = auto()
    LIVE = auto()
    PANEL = auto()
    ANY = TEXT | MARKDOWN | HTML | LIVE | PANEL
    SCRIPT = LIVE | PANEL


class Rich(str):
    """Text of a cell, with what only the template of its shape reads: ``kind`` of a badge, ``href`` of a link, ..."""

    def __new__(cls, text: str, **details: object) -> Rich:
        made = super().__new__(cls, text)
        made.__dict__.update(details)
        return made


def badge(text: str, kind: str) -> Rich:
    """A word that a page shows as a badge; ``kind`` is its class there."""
    return Rich(text, kind=kind)


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column: its title, and the cell of a row, which is "" for what a row does not have.

    ``shape``: how pages show the cell; the names are those of ``tables.html`` and, on a live page, of ``live.js``.
    ``within``: the heading of the page's column that it joins, if that is not its own. ``heading``: the title on a
    page, if it is another one. ``is_named``: whether a narrow page repeats the heading in each cell.
    """

    title: str
    cell: Callable[[R], str]
    shape: str = "text"
    within: str = ""
    views: View = View.ANY
    heading: str = ""
    is_named: bool = False

    @property
    def key(self) -> str:
        """The name of the cell in the data of a page."""
        return self.title.replace(" ", "_")


Columns = Sequence[Column[R]]


def capital(title: str) -> str:
    """The title with a capital at its start."""
    return title[:1].upper() + title[1:]


def plain(*titles: str) -> tuple[Column[Sequence[str]], ...]:
    """Columns of rows that are sequences of cells."""
    return tuple(Column(title, itemgetter(index)) for index, title in enumerate(titles))


PAIRS = plain("what", "value")


def shown(columns: Columns[R], view: View) -> list[Column[R]]:
    """The columns of a view."""
    return [column for column in columns if column.views & view]


def text_table(columns: Columns[R], rows: Iterable[R]) -> list[str]:
    """Aligned lines for a terminal, the titles in capitals."""
    found = shown(columns, View.TEXT)
    cells = [[column.cell(row) for column in found] for row in rows]
    return align_columns([[column.title.upper() for column in found], *cells])


def escape(text: str) -> str:
    """Escape ``text`` so that Markdown has no markup, link, mention, table cell or HTML of it."""
    escaped = _SPECIAL.sub(r"\\\1", printable(text).replace("&", "&amp;"))
    escaped = _AUTOLINK.sub(lambda m: "\\" + m[0], escaped)
    return _REFERENCE.sub(_ENDS_REFERENCE, escaped)


def escape_line(text: str) -> str:
    """Escape like :func:`escape`, and at the start of a line also list markers and heading underlines."""
    return _LINE_START.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", escape(text))


def markdown_table(
    columns: Columns[R], rows: Iterable[R], rule: str = "| --- ", cell: Callable[[str], str] = escape
) -> list[str]:
    """Lines of a table in Markdown. ``rule``: below a title. ``cell``: escapes the text of a cell."""
    found = shown(columns, View.MARKDOWN)
    lines = [[cell(column.title) for column in found]]
    lines += [[_markdown_cell(column.cell(row), cell) for column in found] for row in rows]
    head, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return [head, rule * len(found) + "|", *body]


def _markdown_cell(text: str, cell: Callable[[str], str]) -> str:
    return f"**{cell(text)}**" if getattr(text, "is_bold", False) else cell(text)


def markdown_section(title: str, lines: Iterable[str]) -> list[str]:
    """A heading and what is below it."""
    return [f"## {title}", "", *lines]


def markdown_details(title: str, lines: Iterable[str]) -> list[str]:
    """A section that a reader opens. ``title``: without markup."""
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def markdown_document(blocks: Iterable[Sequence[str]], limit: int | None = MAX_COMMENT) -> str:
    """Blocks of lines with an empty line between them, without those that are empty; ends in a newline.

    Has at most ``limit`` bytes. If there are more, a block takes at most half of the room that is left; its last rows
    are left out, with a sentence about it.
    """
    given = [block for block in blocks if block]
    after, room, left_out = sum(map(_size, given)), (limit or sys.maxsize) - _LEAST, 0
    shown: list[Sequence[str]] = []
    for block in given:
        after -= _size(block)
        fitted = _cut(block, max(room - after, room // 2))
        room -= _size(fitted)
        left_out += not fitted
        shown += [fitted] if fitted else []
    if left_out:
        shown.append([f"_{count_of(left_out, 'more section')} did not fit here; the HTML report is complete._"])
    return "\n\n".join("\n".join(block) for block in shown) + "\n"


def _size(block: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in block) + 1


def _cut(block: Sequence[str], room: int) -> Sequence[str]:
    """The block without its last rows, such that it fits; [] if hardly anything would be left of it."""
    if _size(block) <= room:
        return block
    end = ["", "</details>"] if block[-1] == "</details>" else []
    room -= _size(end) + _LEAST
    saved: list[str] = []
    for line in block[: len(block) - len(end)]:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        saved.append(line)
    rows = [line for line in saved if line.startswith(("| ", "- "))]
    if not rows:
        return []
    missing = count_of(len(block) - len(end) - len(saved), "more row")
    return [*saved, "", f"_{missing} did not fit here; the HTML report is complete._", *end]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a page: parts by shape; ``facts`` are (title, text) pairs."""

    parts: list[tuple[str, Any]]
    attributes: Mapping[str, str]
    element: str = "td"


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table as ``tables.html`` renders it. ``rows``: attributes and cells."""

    caption: str
    head: list[tuple[str, str]]  # title and class
    rows: list[tuple[Mapping[str, str], list[Cell]]] = field(default_factory=list)
    css: str = ""


def page_table(
    columns: Columns[R],
    rows: Iterable[R],
    caption: str,
    css: str = "",
    *,
    attributes: Callable[[R], Mapping[str, str]] = lambda _: {},
    view: View = View.HTML,
) -> PageTable:
    """A table for a page. ``caption``: for screen readers. ``attributes``: of the row's element."""
    groups = _groups(columns, view)
    head = [(title, "num" if group[0].shape == "num" else "") for title, group in groups]
    body = [(attributes(row), [_cell(title, group, row) for title, group in groups]) for row in rows]
    return PageTable(caption, head, body, css)


def describe_columns(columns: Columns[R]) -> dict[str, Any]:
    """What the script of a page shows, as JSON types: its table, and the facts in its panel.

    ``table``: (heading, [(shape, key of the row's data)]) by column. ``facts``: (title, key).
    """
    groups = _groups(columns, View.LIVE)
    table = [(title, [(column.shape, column.key) for column in group]) for title, group in groups]
    return {"table": table, "facts": [(capital(each.title), each.key) for each in shown(columns, View.PANEL)]}


def _groups(columns: Columns[R], view: View) -> list[tuple[str, list[Column[R]]]]:
    """Headings of the page's columns, and what is in each."""
    groups: list[tuple[str, list[Column[R]]]] = []
    for column in shown(columns, view):
        joined = next((group for title, group in reversed(groups) if column.within and title == column.within), None)
        if joined is None:
            groups.append((column.within or column.heading or capital(column.title), [column]))
        else:
            joined.append(column)
    return groups


def _cell(title: str, group: Sequence[Column[R]], row: R) -> Cell:
    first, parts = group[0], list[tuple[str, Any]]()
    for column in group:
        value = column.cell(row)
        if column.shape != "fact":
            parts.append((column.shape, value))
        elif value and parts and parts[-1][0] == "facts":
            parts[-1][1].append((column.title, value))
        elif value:
            parts.append(("facts", [(column.title, value)]))
    if first.shape == "row heading":
        return Cell(parts, {"scope": "row"}, "th")
    css = first.shape if first.shape in _CLASSES else getattr(parts[0][1], "css", "") if parts else ""
    return Cell(parts, {"data-name": title if first.is_named else "", "class": css})
