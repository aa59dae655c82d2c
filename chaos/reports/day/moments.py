"""What happened on a day, in the order of time: entries, waits, gates, halts, approvals, lost notifications."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.core.duration import format_duration
from chaos.gameday.state import DayStatus, PastWait, RunStatus
from chaos.reports.day.record import ClusterRecord
from chaos.reports.day.view import DayView, RunView, seconds_between


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
        gates = "; ".join((*view.gates, *run.entry.gates))
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
        stale = "" if approval.plan_hash == state.plan_hash else ", of another plan: it does not count"
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
