"""Reports in Markdown as GitHub and GitLab render them: their parser, cmark-gfm, and what they look for in its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaos.core.result import RunResult, RunState, StoredRun
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.reports.day.formats import FORMATS
from chaos.reports.run import markdown
from chaos.reports.run.summary import runs_markdown
from chaos.reports.tables import MAX_STEP_SUMMARY, escape, escape_line, markdown_document
from tests.kit.forges import COMMENT, Rendered
from tests.kit.recorded_days import hostile_view

Make = Callable[[str], tuple[RunResult, Timeline]]

STEP_SUMMARY = 1024 * 1024  # bytes
HOSTILE = (
    "@team please",
    "(@org/team)",
    "me@example.com",
    "fixes #12, GH-12, gh-12, a/b#12",
    '!12 $12 &12 %12 ~bug ^alert#12 %v1 ~"two words"',
    "\\@team \\\\@team `@team` *@team*",
    "&#64;team &commat;team",
    "@_hidden @.dot",
    "https://example.com www.example.com mailto:me@example.com",
    "</details></summary><b>@team",
    "/close",
)
TEXT = st.sampled_from(HOSTILE) | st.text(st.sampled_from("@#!$%&~^\\`_*ag1/.-:<>|\"' "), max_size=30)
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


@given(text=TEXT)
@settings(deadline=None)
def test_no_mention_is_alive_and_nothing_is_lost(text: str) -> None:
    for escaped in (escape(text), escape_line(text)):
        rendered = Rendered(f"| a |\n| --- |\n| {escaped} |\n")
        assert rendered.references == []
        assert not {"a", "b", "code", "em", "strong", "img"} & {*rendered.elements}
        shown = "".join(rendered.nodes).replace("\u200b", "").split()
        assert shown == ["a", *text.split()]


@given(text=TEXT)
@SHARED
def test_no_mention_is_alive_in_a_report(hostile: Make, text: str) -> None:
    for source in (markdown.render(*hostile(f"q {text} q")), FORMATS["md"].render(hostile_view(f"q {text} q"))):
        assert Rendered(source).references == []
        assert not re.search(r"^\s*/", source, re.MULTILINE)  # GitLab runs such a line


@pytest.mark.parametrize("length", [1, 10, 300])
def test_a_report_fits_into_a_comment(hostile: Make, length: int) -> None:
    """With 400 steps and 400 expectations, of which the last is violated."""
    result, timeline = hostile("@" * length)
    verdicts = tuple(replace(result.hypothesis[0], name=f"held {n}") for n in range(399))
    last = replace(result.hypothesis[0], status=Status.VIOLATED, name="the last one")
    many = msgspec.structs.replace(result, steps=result.steps * 400, hypothesis=(*verdicts, last))
    source = markdown.render(many, timeline)
    assert len(source.encode()) <= COMMENT
    assert "the last one" in source
    assert " did not fit here; the HTML report is complete._" in source
    elements = Rendered(source).elements
    assert elements.count("details") == elements.count("summary") > 0
    assert source.count("<details>") == source.count("</details>")
    assert all(line.endswith(" |") for line in source.splitlines() if line.startswith("|"))


def test_a_short_report_is_complete(hostile: Make) -> None:
    source = markdown.render(*hostile("x"))
    assert "did not fit" not in source
    assert [line for line in source.splitlines() if line.startswith("<details>")] == [
        f"<details><summary>{name}</summary>" for name in ("Steps", "Assumed", "How it was run", "Evidence")
    ]


@given(st.lists(st.lists(st.sampled_from(["| a | b |", "- x", "## head", "", "ä" * 50]), min_size=1), max_size=30))
def test_a_document_has_never_more_than_its_limit(blocks: list[list[str]]) -> None:
    full = markdown_document(blocks, limit=None)
    assert "did not fit" not in full
    for limit in (1000, 2000):
        short = markdown_document(blocks, limit)
        assert len(short.encode()) <= limit
        assert ("did not fit" in short) or short == full


def test_a_summary_of_a_thousand_runs_has_a_table_first(hostile: Make) -> None:
    """The reports of those that did not hold follow, as many as fit."""

    def stored(number: int, status: Status) -> StoredRun:
        result = msgspec.structs.replace(hostile("x")[0], status=status, targets={"victim": ("worker-1",)})
        name = f"x-{number}/20261201T090000Z"
        return StoredRun(Path(name), name, RunState.FINISHED, f"x-{number}", f"x-{number}-abc", result)

    def report_of(run: StoredRun) -> str:
        return f"# {run.experiment}\n\n" + "| row |\n" * 3000

    runs = [stored(number, Status.HELD if number % 10 else Status.VIOLATED) for number in range(1000)]
    source = runs_markdown(runs, report_of)
    assert len(source.encode()) <= MAX_STEP_SUMMARY < STEP_SUMMARY
    first, table, *_ = source.split("\n\n")
    assert first == "**900 held, 100 violated**"
    rows = table.splitlines()[2:]
    assert len(rows) == 1000
    assert all("violated" in row for row in rows[:100])
    assert "<details><summary>x-0-abc: violated</summary>" in source
    assert "<summary>x-1-abc" not in source
    assert "more section" in source
    assert source.count("<details>") == source.count("</details>")
    assert Rendered(source).references == []
    assert "<details>" not in runs_markdown(runs[1:10], report_of)
