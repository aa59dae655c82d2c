"""Tables of all reports: one entry is one column, in every view."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from chaos.reports.markup import _templates
from chaos.reports.tables import (
    Column,
    PageTable,
    Rich,
    View,
    badge,
    describe_columns,
    markdown_table,
    page_table,
    plain,
    text_table,
)

Pair = tuple[str, str]
COLUMNS: tuple[Column[Pair], ...] = (
    Column("name", lambda row: row[0], "strong", "", View.TEXT | View.MARKDOWN | View.HTML),
    Column("state", lambda row: badge(row[1], "held"), "badge", "", View.HTML | View.LIVE),
    Column("more words", lambda row: row[1], "sub", "Name", View.HTML),
    Column("expected", lambda row: row[0], "fact", "Why", View.HTML | View.PANEL),
    Column("observed", lambda row: row[1], "fact", "Why", View.HTML | View.PANEL),
    Column("count", lambda row: row[1], "num", views=View.TEXT | View.MARKDOWN | View.HTML, is_named=True),
)
ROWS = [("a|b", "<1>"), ("c", "")]


def rendered(model: PageTable) -> str:
    page = "{% from 'tables.html' import table %}{{ table(model) }}"
    return _templates().from_string(page).render(model=model)


def test_text_and_markdown_have_the_columns_of_their_view() -> None:
    assert text_table(COLUMNS, ROWS) == ["NAME  COUNT", "a|b   <1>", "c"]
    assert markdown_table(COLUMNS, ROWS) == ["| name | count |", "| --- | --- |", "| a\\|b | \\<1\\> |", "| c |  |"]
    assert markdown_table(plain("x_y"), [("1",)], "|---", str.upper) == ["| X_Y |", "|---|", "| 1 |"]


def test_cells_of_a_page_join_those_with_their_heading() -> None:
    model = page_table(COLUMNS, ROWS, "Two <rows>", "small", attributes=lambda row: {"id": row[0], "class": ""})
    assert model.head == [("Name", ""), ("State", ""), ("Why", ""), ("Count", "num")]
    assert [[shape for shape, _ in cell.parts] for cell in model.rows[0][1]] == [
        ["strong", "sub"],
        ["badge"],
        ["facts"],
        ["num"],
    ]
    page = "".join(line.strip() for line in rendered(model).splitlines())
    assert page.startswith('<table class="small"><caption>Two &lt;rows&gt;</caption>')
    assert '<tr id="a|b"><td><strong>a|b</strong> <span class="sub">&lt;1&gt;</span></td>' in page
    assert '<td><span class="badge held">&lt;1&gt;</span></td>' in page
    assert "<dl><dt>expected</dt> <dd>a|b</dd> <dt>observed</dt> <dd>&lt;1&gt;</dd> </dl>" in page
    assert '<td data-name="Count" class="num">&lt;1&gt;</td>' in page
    assert "<td><dl><dt>expected</dt> <dd>c</dd> </dl></td>" in page, "what a row does not have is not shown"


def test_parts_of_cells_by_shape() -> None:
    cells: dict[str, Any] = {
        "text": "a&b",
        "p": "a",
        "code": "a",
        "quiet": "a",
        "link": Rich("a", href="#x"),
        "badges": Rich("a, b", parts=[badge("a", "held"), badge("b", "lab")]),
        "links": Rich("1, 2, 3", linked=(1, 2), more=1),
        "row heading": "a",
    }
    columns: list[Column[dict[str, Any]]] = [Column(shape, itemgetter(shape), shape) for shape in cells]
    page = rendered(page_table(columns, [cells], "")).replace("\n", "")
    for expected in (
        "<td>a&amp;b</td>",
        "<td><p>a</p></td>",
        "<td><code>a</code></td>",
        '<td><span class="quiet">a</span></td>',
        '<td><a href="#x">a</a></td>',
        '<td><span class="badge held">a</span> <span class="badge lab">b</span></td>',
        '<td class="links"><a href="#e1">#1</a> <a href="#e2">#2</a> and 1 more</td>',
        '<th scope="row">a</th>',
    ):
        assert expected in page, expected


def test_a_script_gets_its_table_and_the_facts_of_its_panel() -> None:
    assert describe_columns(COLUMNS) == {
        "table": [("State", [("badge", "state")])],
        "facts": [("Expected", "expected"), ("Observed", "observed")],
    }
    everywhere: list[Column[Pair]] = [Column("in short", lambda row: row[0])]
    assert describe_columns(everywhere) == {
        "table": [("In short", [("text", "in_short")])],
        "facts": [("In short", "in_short")],
    }
