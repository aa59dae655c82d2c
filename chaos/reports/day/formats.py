"""The formats of the day's report, by name; ``report.html``, ``junit.xml`` and ``report.json`` are made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from msgspec import to_builtins

from chaos.core.text import printable
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
from chaos.reports.day.drawings import render_calendar, render_timeline
from chaos.reports.day.markdown import lesson_text, render_markdown, render_review
from chaos.reports.day.view import SYMBOLS, ClusterRecord, DayView, RunView, moment_of
from chaos.reports.junit import Case, Suite, junit_document
from chaos.reports.markup import render_page
from chaos.reports.run.json_ import to_text
from chaos.reports.tables import page_table

VERSION = 1
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
        f"{view.gameday} on {record.cluster}",
        created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") if created else "1970-01-01T00:00:00",
        sum(run.seconds or 0.0 for run in runs),
        details(view),
        [_case(view, run) for run in runs],
        [view.headline],
    )


def _case(view: DayView, run: RunView) -> Case:
    classname = f"nodefall.{printable(view.gameday)}.{printable(run.entry.experiment)}"
    message = run.run.reason or run.word
    lines = (message, *(f"{each.kind}: {lesson_text(each)}" for each in surprises(view, run)))
    outcome = _OUTCOMES.get(run.word, "error")
    return Case(classname, str(run.run.key), run.seconds or 0.0, outcome, run.word, message, lines)


def render_json(view: DayView) -> str:
    """The day for programs: its runs, what happened and what was learned. In ASCII, ending in a newline.

    One object; keys sorted, in snake_case; times in seconds since the epoch; ``version`` is VERSION.
    """
    document = {
        "version": VERSION,
        "gameday": view.gameday,
        "day": view.day,
        "title": view.title,
        "owner": view.owner,
        "status": view.status,
        "exit_code": int(view.exit_code),
        "headline": view.headline,
        "clusters": [_cluster(record) for record in view.records],
        "runs": [_run(run) for run in view.runs],
        "moments": to_builtins(moments(view)),
        "lessons": to_builtins(lessons(view)),
    }
    return to_text(document)


def _cluster(record: ClusterRecord) -> dict[str, Any]:
    state = record.state
    return {
        "cluster": record.cluster,
        "simulated": record.simulated,
        "status": str(state.status),
        "plan_hash": state.plan_hash,
        "seed": state.seed,
        "halts": to_builtins(state.halts),
        "approvals": to_builtins(state.approvals),
        "waits": to_builtins(state.waits),
        "undelivered": to_builtins(state.undelivered),
    }


def _run(run: RunView) -> dict[str, Any]:
    done = run.run
    return {
        "cluster": run.cluster,
        "entry": done.key.entry,
        "repetition": done.key.repetition,
        "experiment": run.entry.experiment,
        "seed": done.seed,
        "run": done.run,
        "result": run.word,
        "reason": done.reason,
        "gates_held": done.gates_held,
        "begun": done.begun,
        "ended": done.ended,
        "report": run.link,
    }


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
