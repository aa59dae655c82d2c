"""What happened on a day, in the order of time; what was learned; and texts that several formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chaos.core.duration import format_duration
from chaos.core.result import RunResult
from chaos.core.text import on_node
from chaos.core.verdict import Status
from chaos.gameday.state import DayStatus, PastWait, RunStatus
from chaos.reports.day.view import SYMBOLS, ClusterRecord, DayView, RunView, seconds_between
from chaos.reports.markup import Html, join, tag
from chaos.reports.run.outline import pending_undo, sections
from chaos.reports.tables import Column, Rich, View, badge


@dataclass(frozen=True, slots=True)
class Moment:
    """``kind``: a word for what it is. ``verdict``: of a run that ends, also in ``text``. ``at``: epoch seconds."""

    at: float
    cluster: str
    kind: str
    text: str
    verdict: str = ""
    link: str = ""


def moments(view: DayView) -> list[Moment]:
    """All of them, sorted; of one instant, what a run needs first comes first."""
    found = [moment for record in view.records for moment in _before_runs(record)]
    found += [moment for run in view.runs for moment in _of_run(view, run)]
    found += [moment for record in view.records for moment in _after_runs(record)]
    return sorted(found, key=lambda moment: moment.at)


def _of_run(view: DayView, run: RunView) -> Iterator[Moment]:
    done, name = run.run, view.label_of_row(run.row)
    if done.gates_held is not None:
        gates = "; ".join((*view.latest.gates, *run.entry.gates))
        yield Moment(done.gates_held, run.cluster, "gates", f"held before {name}: {gates}")
    if done.begun is not None:
        yield Moment(done.begun, run.cluster, "entry", f"{name} begins (run {done.run}, seed {done.seed})")
    if done.ended is None:
        return
    reason = f": {done.reason}" if done.reason else ""
    if done.status is RunStatus.SKIPPED:
        yield Moment(done.ended, run.cluster, "skipped", f"{name}{reason}")
    else:
        took = f" after {run.took}" if run.took else ""
        yield Moment(done.ended, run.cluster, "entry", f"{name} is {run.word}{took}{reason}", run.word, run.link)


def _before_runs(record: ClusterRecord) -> Iterator[Moment]:
    state, cluster = record.state, record.cluster
    yield Moment(state.created, cluster, "day", f"its state is created: plan {state.plan_hash[:12]}")
    for approval in state.approvals:
        what = f"entry {approval.entry}" if approval.entry else "the day"
        via = f" ({approval.via})" if approval.via else ""
        stale = "" if approval.plan_hash == state.plan_hash else ", for another plan: it does not count"
        text = f"of {what} by {approval.by}{via}, plan {approval.plan_hash[:12]}{stale}"
        yield Moment(approval.at, cluster, "approval", text)


def _after_runs(record: ClusterRecord) -> Iterator[Moment]:
    state, cluster = record.state, record.cluster
    yield from _waits(record)
    for halt in state.halts:
        yield Moment(halt.at, cluster, "halt", f"by {halt.by}" + (f": {halt.reason}" if halt.reason else ""))
        if halt.resumed_at is not None:
            yield Moment(halt.resumed_at, cluster, "resume", f"by {halt.resumed_by}: {halt.resumed_because}")
    for lost in state.undelivered:
        yield Moment(lost.at, cluster, "not delivered", f"{lost.kind} to {lost.receiver}: {lost.reason}")
    if state.status is DayStatus.FINISHED:
        ends = [run.ended for run in state.runs if run.ended is not None]
        yield Moment(max(ends, default=state.created), cluster, "day", "the last entry is over")


def _waits(record: ClusterRecord) -> Iterator[Moment]:
    state = record.state
    for wait in state.waits:
        yield Moment(wait.since, record.cluster, "wait", _describe_wait(wait))
    if state.waiting:
        reasons = (*state.waiting.earlier, state.waiting.reason)
        is_on = state.status is DayStatus.RUNNING
        end = "goes on" if is_on else "until it was stopped"
        text = f"for {state.waiting.what}, {end}: {'; then '.join(reasons)}"
        yield Moment(state.waiting.since, record.cluster, "wait", text)


def _describe_wait(wait: PastWait) -> str:
    seconds = seconds_between(wait.since, wait.ended)
    length = "" if seconds is None else f"{format_duration(round(seconds, 1))} "
    cut = ", until its process ended" if seconds is None else ""
    return f"{length}for {wait.what}{cut}: {'; then '.join(wait.reasons)}"


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
    found = [lesson for run in view.runs for lesson in _lessons_of(view, run)]
    found += [*_differences(view), *_undelivered(view)]
    return sorted(found, key=lambda lesson: ORDER.index(lesson.kind))


def surprises(view: DayView, run: RunView) -> list[Lesson]:
    """Those of one run."""
    return sorted(_lessons_of(view, run), key=lambda lesson: ORDER.index(lesson.kind))


def _lessons_of(view: DayView, run: RunView) -> Iterator[Lesson]:
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
            if verdict.shown in (Status.HELD, Status.KNOWN):
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
            yield Lesson("differs", entry, "its runs ended differently", "; ".join(parts))


def _undelivered(view: DayView) -> Iterator[Lesson]:
    for record in view.records:
        where = f"notifications on {record.cluster}" if len(view.records) > 1 else "notifications"
        for receiver in dict.fromkeys(lost.receiver for lost in record.state.undelivered):
            lost = [each for each in record.state.undelivered if each.receiver == receiver]
            yield Lesson("not delivered", where, f"{len(lost)} to {receiver}", lost[-1].reason)


def badge_of(word: str) -> Rich:
    """A verdict, a status or a kind of lesson, with its symbol."""
    return badge(f"{SYMBOLS.get(word, '')} {word}".strip(), word.replace(" ", "-"))


def moment_columns(view: DayView) -> tuple[Column[Moment], ...]:
    """The columns of the timeline; a page of one cluster does not name it."""
    many = View.HTML if len(view.clusters) > 1 else View(0)
    return (
        Column("when", lambda moment: view.when(moment.at), "time"),
        Column("cluster", lambda moment: moment.cluster, views=View.MARKDOWN | many),
        Column("what", lambda moment: moment.kind),
        Column(
            "", lambda moment: badge_of(moment.verdict) if moment.verdict else "", "badge", "", View.HTML, "Details"
        ),
        Column("", lambda moment: Rich(moment.text, href=moment.link), "link", "Details", View.HTML),
        Column("", lambda moment: moment.text, views=View.MARKDOWN),
    )


def matrix(view: DayView) -> list[Column[tuple[str, int]]]:
    """The columns of the verdicts: of rows that are entry and repetition, a column for each cluster."""
    entry: Column[tuple[str, int]] = Column("entry", view.label_of_row, "row heading")
    return [entry, *(column for cluster in view.clusters for column in _cluster_columns(view, cluster))]


def _cluster_columns(view: DayView, cluster: str) -> Iterator[Column[tuple[str, int]]]:
    def of(cell: Callable[[RunView], str], none: str = "") -> Callable[[tuple[str, int]], str]:
        def found(row: tuple[str, int]) -> str:
            run = view.at(row, cluster)
            return none if run is None else cell(run)

        return found

    missing = "not on this cluster"
    yield Column(cluster, of(_run_text, missing), views=View.MARKDOWN)
    yield Column("verdict", of(lambda run: badge_of(run.word)), "badge", "", View.HTML, heading=cluster)
    yield Column("took", of(_facts_of_run), "sub", cluster, View.HTML)
    yield Column("reason", of(lambda run: run.run.reason if run.word != "held" else ""), "sub", cluster, View.HTML)
    yield Column("missing", of(lambda _: "", missing), "quiet", cluster, View.HTML)


def _run_text(run: RunView) -> str:
    reason = f": {run.run.reason}" if run.run.reason and run.word != "held" else ""
    return f"{badge_of(run.word)}{reason}" + (f", {run.took}" if run.took else "")


def _facts_of_run(run: RunView) -> Html:
    """How long it took, and a link to its report."""
    link = tag("a", "report", href=run.link, aria_label=f"report of {run.run.key}") if run.link else Html()
    return join([fact for fact in (run.took, link) if fact], ", ")


SIMULATED = "Simulated: {}. That shows what the lab models, not what your cluster does."
NOTHING_LEARNED = "Nothing unexpected: every run took place, and held."


def title(view: DayView) -> str:
    """``day 2026-12-01 of monthly``."""
    return f"day {view.latest.state.day} of {view.latest.state.gameday}"


def window_lines(view: DayView) -> list[str]:
    """The window with its freezes, and the schedule."""
    window = view.calendar.window
    hours = "; ".join(map(str, window.open)) or "day and night"
    freezes = f", except {'; '.join(map(str, window.not_))}" if window.not_ else ""
    lines = ["The window is always open" if view.calendar.always_open else f"The window: {hours}{freezes}"]
    if view.latest.schedule:
        lines.append(f"The schedule: {view.latest.schedule}")
    return [f"{line} ({view.calendar.zone})." for line in lines]


def details(view: DayView) -> list[tuple[str, str]]:
    """Circumstances of the day, as (name, value)."""
    several = len(view.records) > 1
    facts = [
        ("Game day", f"{view.latest.title} ({view.latest.state.gameday})"),
        ("Owner", view.latest.owner),
        ("Gates", "; ".join(view.latest.gates) or "none"),
        ("Abort conditions", "; ".join(view.latest.abort) or "none"),
    ]
    for record in view.records:
        state, where = record.state, record.cluster if several else ""
        facts += [
            (on_node("Plan", where), f"sha256 {state.plan_hash}"),
            (on_node("Seed", where), str(state.seed)),
            (on_node("Run by", where), state.holder or "no process"),
            (on_node("Takeovers", where), str(max(state.epoch - 1, 0))),
            (on_node("Status", where), str(state.status)),
        ]
    return facts
