"""What was learned on a day, violations first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.core.result import RunResult
from chaos.core.verdict import Status
from chaos.gameday.state import RunStatus
from chaos.reports.day.view import DayView, RunView
from chaos.reports.run.outline import pending_undo, sections

ORDER = ("violated", "left behind", "differs", "inconclusive", "interrupted", "not run", "by others", "not delivered")


@dataclass(frozen=True, slots=True)
class Lesson:
    """``kind``: one of :data:`ORDER`. ``where``: the run, as people read it. ``link``: of what shows it, or ""."""

    kind: str
    where: str
    what: str
    why: str = ""
    expected: str = ""
    observed: str = ""
    link: str = ""


def lessons(view: DayView) -> list[Lesson]:
    """Everything that did not go as expected, in the order of :data:`ORDER`, then of the runs."""
    found = [lesson for run in view.runs for lesson in _of_run(view, run)]
    found += [*_differences(view), *_undelivered(view)]
    return sorted(found, key=lambda lesson: ORDER.index(lesson.kind))


def surprises(view: DayView, run: RunView) -> list[Lesson]:
    """Those of one run."""
    return sorted(_of_run(view, run), key=lambda lesson: ORDER.index(lesson.kind))


def _of_run(view: DayView, run: RunView) -> Iterator[Lesson]:
    where = view.label(run)
    if run.run.status is RunStatus.SKIPPED:
        yield Lesson("not run", where, "it did not take place", run.run.reason)
    if run.word == "interrupted":
        yield Lesson("interrupted", where, "it was stopped before its verdict", run.run.reason, link=run.link)
    verdicts = list(_verdicts(where, run)) if run.result else []
    yield from verdicts
    if run.word in ("violated", "inconclusive") and run.word not in {lesson.kind for lesson in verdicts}:
        yield Lesson(run.word, where, "the run as a whole", run.run.reason, link=run.link)
    if run.result:
        yield from _left_behind(where, run, run.result)
        for foreign in run.result.foreign_faults:
            yield Lesson("by others", where, foreign.text, link=run.link)


def _verdicts(where: str, run: RunView) -> Iterator[Lesson]:
    for section in sections(run.result) if run.result else ():
        for index, verdict in enumerate(section.verdicts):
            if verdict.status is Status.HELD:
                continue
            kind = "violated" if verdict.status is Status.VIOLATED else "inconclusive"
            link = f"{run.link}#{section.key}-{index}" if run.link else ""
            yield Lesson(kind, where, verdict.name, verdict.because, verdict.expected, verdict.observed, link)


def _left_behind(where: str, run: RunView, result: RunResult) -> Iterator[Lesson]:
    for line in pending_undo(result):
        yield Lesson("left behind", where, "the undo was pending when the run ended", line, link=run.link)
    for line in result.leftovers:
        yield Lesson("left behind", where, line, link=run.link)


def _differences(view: DayView) -> Iterator[Lesson]:
    """Entries whose runs did not all end alike."""
    for entry in dict.fromkeys(entry for entry, _ in view.rows):
        by_verdict: dict[str, list[str]] = {}
        for run in view.runs:
            if run.row[0] == entry and run.run.verdict in ("held", "violated"):
                by_verdict.setdefault(run.word, []).append(view.label(run))
        if len(by_verdict) > 1:
            parts = [f"{word}: {', '.join(by_verdict[word])}" for word in ("violated", "held")]
            yield Lesson("differs", entry, "its runs did not end alike", "; ".join(parts))


def _undelivered(view: DayView) -> Iterator[Lesson]:
    for record in view.records:
        where = f"notifications on {record.cluster}" if len(view.records) > 1 else "notifications"
        for receiver in dict.fromkeys(lost.receiver for lost in record.state.undelivered):
            lost = [each for each in record.state.undelivered if each.receiver == receiver]
            yield Lesson("not delivered", where, f"{len(lost)} to {receiver}", lost[-1].reason)
