"""``review.md``: a template for the written review after the day, filled as far as facts go."""

from __future__ import annotations

from chaos.core.verdict import Status
from chaos.gameday.state import RunStatus
from chaos.reports.day.lessons import Lesson, lessons, surprises
from chaos.reports.day.markdown import lesson_text
from chaos.reports.day.texts import title
from chaos.reports.day.view import DayView, RunView
from chaos.reports.run.markdown import escape, escape_line

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


def render(view: DayView) -> str:
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
    summary = ["## In one paragraph", "", _BLANK]
    entries = [_entry(view, entry) for entry in dict.fromkeys(run.row[0] for run in view.runs)]
    blocks = [head, summary, *entries, ["## To do", "", *_to_do(view)], ["## The next game day", "", _BLANK]]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


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
    lines = [f"- [ ] {escape(_line(lesson))} (who, until when: {_BLANK})" for lesson in found]
    return lines or [f"- [ ] {_BLANK}"]


def _line(lesson: Lesson) -> str:
    why = f" ({lesson.why})" if lesson.why else ""
    return f"{lesson.kind}: {lesson.where}: {lesson.what}{why}: {_TO_DO[lesson.kind]}"
