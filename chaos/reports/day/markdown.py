"""``report.md`` of a day: for issues, wikis and terminals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chaos.reports.day.lessons import Lesson, lessons
from chaos.reports.day.moments import moments
from chaos.reports.day.texts import NOTHING_LEARNED, SIMULATED, details, title, window_lines
from chaos.reports.day.view import SYMBOLS, DayView, RunView
from chaos.reports.run.markdown import escape, escape_line


def render(view: DayView) -> str:
    """GitHub-flavoured Markdown, ending in a newline."""
    blocks = [
        [f"# {escape(title(view))}: {view.status}", "", f"**{escape(view.headline)}**"],
        [escape_line(f"{view.title}, of {view.owner}")],
        ["## Verdicts", "", *_matrix(view)],
        ["## What was learned", "", *_lessons(view)],
        ["## Window", "", *(f"- {escape_line(line)}" for line in window_lines(view))],
        ["## Timeline of the day", "", *_moments(view)],
        ["## How it was run", "", *markdown_table(("what", "value"), details(view))],
    ]
    if view.simulated:
        blocks.append([escape_line(SIMULATED.format(", ".join(view.simulated)))])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table, every cell escaped."""
    lines = [list(head), ["---"] * len(head), *([escape(cell) for cell in row] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def lesson_text(lesson: Lesson) -> str:
    """One line: what, why, expected and observed."""
    why = f": {lesson.why}" if lesson.why else ""
    pairs = (("expected", lesson.expected), ("observed", lesson.observed))
    facts = ", ".join(f"{name} {value}" for name, value in pairs if value)
    return f"{lesson.what}{why}" + (f" ({facts})" if facts else "")


def _matrix(view: DayView) -> list[str]:
    clusters = [escape(cluster) for cluster in view.clusters]
    rows = [(view.label_of_row(row), *(_cell(view.at(row, each)) for each in view.clusters)) for row in view.rows]
    return markdown_table(("entry", *clusters), rows)


def _cell(run: RunView | None) -> str:
    if run is None:
        return "not on this cluster"
    reason = f": {run.run.reason}" if run.run.reason and run.word != "held" else ""
    return f"{SYMBOLS.get(run.word, '')} {run.word}{reason}".strip() + (f", {run.took}" if run.took else "")


def _lessons(view: DayView) -> list[str]:
    found = lessons(view)
    if not found:
        return [NOTHING_LEARNED]
    return [f"- **{escape(each.kind)}** {escape(each.where)}: {escape(lesson_text(each))}" for each in found]


def _moments(view: DayView) -> list[str]:
    rows = ((view.when(each.at), each.cluster, each.kind, each.text) for each in moments(view))
    return markdown_table(("when", "cluster", "what", ""), rows)
