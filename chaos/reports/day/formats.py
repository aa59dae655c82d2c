"""The formats of the day's report, by name: for issues, wikis, CI systems and programs, and as one offline page.

``review.md`` is a template for the written review after the day, filled as far as facts go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC

from chaos.core.text import printable
from chaos.core.verdict import Status
from chaos.gameday.state import RunStatus
from chaos.reports.day.contents import (
    NOTHING_LEARNED,
    SIMULATED,
    Lesson,
    Moment,
    badge_of,
    details,
    lessons,
    matrix,
    moment_columns,
    moments,
    surprises,
    title,
    window_lines,
)
from chaos.reports.day.document import render_json
from chaos.reports.day.drawings import render_calendar, render_timeline
from chaos.reports.day.view import SYMBOLS, ClusterRecord, DayView, RunView, moment_of
from chaos.reports.markup import render_page
from chaos.reports.run.junit import Case, Suite, junit_document
from chaos.reports.tables import (
    PAIRS,
    escape,
    escape_line,
    markdown_document,
    markdown_section,
    markdown_table,
    page_table,
)


def render_markdown(view: DayView) -> str:
    """GitHub-flavoured Markdown, ending in a newline."""
    simulated = SIMULATED.format(", ".join(view.simulated)) if view.simulated else ""
    return markdown_document(
        (
            [f"# {escape(title(view))}: {view.status}", "", f"**{escape(view.headline)}**"],
            [escape_line(f"{view.latest.title}, of {view.latest.owner}")],
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
    "violated": "fix it, or correct the expectation",
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
        f"# Review: {escape(view.latest.title)}, {escape(title(view))}",
        "",
        f"- Owner: {escape(view.latest.owner)}",
        f"- Present: {_BLANK}",
        f"- Clusters: {escape(', '.join(view.clusters))}",
        f"- Result: **{view.status}**, {escape(view.headline)}",
        "- Full report: [report.html](report.html)",
    ]
    summary = markdown_section("In one paragraph", [_BLANK])
    entries = [_entry(view, entry) for entry in dict.fromkeys(run.row[0] for run in view.runs)]
    to_do, following = markdown_section("To do", _to_do(view)), markdown_section("The next game day", [_BLANK])
    return markdown_document([head, summary, *entries, to_do, following], limit=None)


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


_OUTCOMES = {"held": "", "violated": "failure"}


def render_html(view: DayView) -> str:
    """A self-contained page without scripts, ending in a newline."""
    found = moments(view)
    return render_page(
        "day.html",
        ("base.css", "day.css"),
        title=f"{SYMBOLS[view.status]} {title(view)} {view.status}",
        view=view,
        status=badge_of(view.status),
        name=title(view),
        simulated=SIMULATED.format(", ".join(view.simulated)) if view.simulated else "",
        matrix=page_table(matrix(view), view.rows, "Verdict of each entry by cluster"),
        lessons=[(lesson, badge_of(lesson.kind), _facts(lesson)) for lesson in lessons(view)],
        nothing_learned=NOTHING_LEARNED,
        window=window_lines(view),
        calendar=render_calendar(view),
        timeline=render_timeline(view),
        moments=page_table(moment_columns(view), found, "Everything that happened, in order", attributes=_moment_class),
        details=details(view),
    )


def _facts(lesson: Lesson) -> list[tuple[str, str]]:
    return [(name, value) for name, value in (("expected", lesson.expected), ("observed", lesson.observed)) if value]


def _moment_class(moment: Moment) -> dict[str, str]:
    return {"class": f"m-{moment.kind.replace(' ', '-')}"}


def render_junit(view: DayView) -> str:
    """A suite for each cluster, a case for each run.

    A violated run is a failure. One that was not decided, interrupted, skipped or has not begun must not look green,
    but is no failure of the cluster: an error of that type.
    """
    return junit_document(_suite(view, record) for record in view.records)


def _suite(view: DayView, record: ClusterRecord) -> Suite:
    runs = [run for run in view.runs if run.cluster == record.cluster]
    created = moment_of(record.state.created)
    return Suite(
        f"{view.latest.state.gameday} on {record.cluster}",
        created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") if created else "1970-01-01T00:00:00",
        sum(run.seconds or 0.0 for run in runs),
        details(view),
        [_case(view, run) for run in runs],
        [view.headline],
    )


def _case(view: DayView, run: RunView) -> Case:
    classname = f"nodefall.{printable(view.latest.state.gameday)}.{printable(run.entry.experiment)}"
    message = run.run.reason or run.word
    lines = (message, *(f"{each.kind}: {lesson_text(each)}" for each in surprises(view, run)))
    outcome = _OUTCOMES.get(run.word, "error")
    cluster = f", {run.cluster}" if len(view.records) > 1 else ""  # readers may merge cases of two suites
    return Case(classname, f"{run.run.key}{cluster}", run.seconds or 0.0, outcome, run.word, message, lines)


@dataclass(frozen=True, slots=True)
class DayFormat:
    """``file``: its name in the directory of the day. ``for_people``: people edit it, so it is never overwritten."""

    file: str
    render: Callable[[DayView], str]
    for_people: bool = False


FORMATS: Mapping[str, DayFormat] = {
    "html": DayFormat("report.html", render_html),
    "md": DayFormat("report.md", render_markdown),
    "junit": DayFormat("junit.xml", render_junit),
    "json": DayFormat("report.json", render_json),
    "review": DayFormat("review.md", render_review, for_people=True),
}
