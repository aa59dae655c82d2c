"""A day for issues, wikis and terminals; and ``review.md``, a template for the written review after it."""

from __future__ import annotations

from chaos.core.verdict import Status
from chaos.gameday.state import RunStatus
from chaos.reports.day.contents import (
    NOTHING_LEARNED,
    SIMULATED,
    Lesson,
    details,
    lessons,
    matrix,
    moment_columns,
    moments,
    surprises,
    title,
    window_lines,
)
from chaos.reports.day.view import DayView, RunView
from chaos.reports.tables import PAIRS, escape, escape_line, markdown_document, markdown_section, markdown_table


def render_markdown(view: DayView) -> str:
    """GitHub-flavoured Markdown, ending in a newline."""
    simulated = SIMULATED.format(", ".join(view.simulated)) if view.simulated else ""
    return markdown_document(
        (
            [f"# {escape(title(view))}: {view.status}", "", f"**{escape(view.headline)}**"],
            [escape_line(f"{view.title}, of {view.owner}")],
            markdown_section("Verdicts", markdown_table(matrix(view), view.rows)),
            markdown_section("What was learned", _lessons(view)),
            markdown_section("Window", (f"- {escape_line(line)}" for line in window_lines(view))),
            markdown_section("Timeline of the day", markdown_table(moment_columns(view), moments(view))),
            markdown_section("How it was run", markdown_table(PAIRS, details(view))),
            [escape_line(simulated)] if simulated else [],
        )
    )


def lesson_text(lesson: Lesson) -> str:
    """One line: what, why, expected and observed."""
    why = f": {lesson.why}" if lesson.why else ""
    pairs = (("expected", lesson.expected), ("observed", lesson.observed))
    facts = ", ".join(f"{name} {value}" for name, value in pairs if value)
    return f"{lesson.what}{why}" + (f" ({facts})" if facts else "")


def _lessons(view: DayView) -> list[str]:
    found = lessons(view)
    if not found:
        return [NOTHING_LEARNED]
    return [f"- **{escape(each.kind)}** {escape(each.where)}: {escape(lesson_text(each))}" for each in found]


_BLANK = "_to be written_"
_TO_DO = {
    "violated": "mend it, or correct the expectation",
    "left behind": "finish the undo (nodefall undo), and find out why it was not finished",
    "differs": "find out what differs",
    "inconclusive": "make it decidable, and run it again",
    "interrupted": "decide whether to run it again",
    "not run": "remove the reason, or the entry",
    "by others": "find out who did that, and agree on the hours",
    "not delivered": "repair the receiver",
}


def render_review(view: DayView) -> str:
    """GitHub-flavoured Markdown, ending in a newline."""
    head = [
        f"# Review: {escape(view.title)}, {escape(title(view))}",
        "",
        f"- Owner: {escape(view.owner)}",
        f"- Present: {_BLANK}",
        f"- Clusters: {escape(', '.join(view.clusters))}",
        f"- Result: **{view.status}**, {escape(view.headline)}",
        "- Full report: [report.html](report.html)",
    ]
    summary = markdown_section("In one paragraph", [_BLANK])
    entries = [_entry(view, entry) for entry in dict.fromkeys(run.row[0] for run in view.runs)]
    to_do, following = markdown_section("To do", _to_do(view)), markdown_section("The next game day", [_BLANK])
    return markdown_document([head, summary, *entries, to_do, following])


def _entry(view: DayView, name: str) -> list[str]:
    runs = [run for run in view.runs if run.row[0] == name]
    entry = runs[0].entry
    lines = [f"## {escape(name)}", "", escape_line(entry.title), "", "**Expected**", ""]
    lines += [f"- {escape_line(each)}" for each in _expected(runs)] or [f"- {_BLANK}"]
    lines += ["", "**Happened**", ""]
    for run in runs:
        lines += _happened(view, run)
    return [*lines, "", "**Why, and what surprised us**", "", _BLANK]


def _expected(runs: list[RunView]) -> list[str]:
    """Names of the hypotheses: those of the runs, which have facts of the cluster in them, or of the document."""
    judged = [run.result for run in runs if run.result and run.result.hypothesis]
    if not judged:
        return list(runs[0].entry.expectations)
    return list(dict.fromkeys(v.name + (f": {v.expected}" if v.expected else "") for v in judged[0].hypothesis))


def _happened(view: DayView, run: RunView) -> list[str]:
    took = f", took {run.took}" if run.took and run.run.status is RunStatus.DONE else ""
    begun = f", {view.when(run.run.begun)}" if run.run.begun is not None else ""
    reason = f": {run.run.reason}" if run.run.reason else ""
    link = f" ([report]({run.link}))" if run.link else ""
    lines = [f"- {escape(view.label(run))} was **{escape(run.word)}**{escape(reason)}{escape(begun + took)}{link}"]
    lines += [f"  - {escape(each.kind)}: {escape(lesson_text(each))}" for each in surprises(view, run)]
    held = [v for v in run.result.hypothesis if v.status is Status.HELD] if run.result else []
    return [*lines, *(f"  - held: {escape(v.name)}: {escape(v.because)}" for v in held)]


def _to_do(view: DayView) -> list[str]:
    found = lessons(view)
    lines = [f"- [ ] {escape(_to_do_line(lesson))} (who, until when: {_BLANK})" for lesson in found]
    return lines or [f"- [ ] {_BLANK}"]


def _to_do_line(lesson: Lesson) -> str:
    why = f" ({lesson.why})" if lesson.why else ""
    return f"{lesson.kind}: {lesson.where}: {lesson.what}{why}: {_TO_DO[lesson.kind]}"
