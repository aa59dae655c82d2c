"""``report.json`` of a day: its runs, what happened and what was learned, for programs. Pure.

One object; keys sorted, in snake_case; times in seconds since the epoch, each with RFC 3339 beside it
(``begun_rfc3339``); ``version`` is VERSION. ``nodefall schema day`` prints its schema.
"""

from __future__ import annotations

from msgspec import Struct, to_builtins

from chaos.core.moments import add_rfc3339, rounded
from chaos.gameday.events import Undelivered
from chaos.gameday.state import Approval, Halt, PastWait
from chaos.reports.day.contents import Lesson, Moment, lessons, moments
from chaos.reports.day.view import ClusterRecord, DayView, RunView
from chaos.reports.run.json_ import to_text

VERSION = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added


class DayCluster(Struct, frozen=True):
    """The day on one cluster, with what stopped it, who approved it and what it waited for."""

    cluster: str
    simulated: bool
    status: str
    plan_hash: str
    seed: int
    halts: tuple[Halt, ...]
    approvals: tuple[Approval, ...]
    waits: tuple[PastWait, ...]
    undelivered: tuple[Undelivered, ...]


class DayDocumentRun(Struct, frozen=True):
    """A run of the day. ``result``: its verdict, or its status without one. ``report``: relative to the directory."""

    cluster: str
    entry: str
    repetition: int
    experiment: str
    seed: int
    run: str
    result: str
    reason: str
    gates_held: float | None
    begun: float | None
    ended: float | None
    report: str


class DayDocument(Struct, frozen=True):
    """A game day."""

    gameday: str
    day: str
    title: str
    owner: str
    status: str
    exit_code: int
    headline: str
    clusters: list[DayCluster]
    runs: list[DayDocumentRun]
    moments: list[Moment]
    lessons: list[Lesson]
    version: int = VERSION


def render_json(view: DayView) -> str:
    """The document in ASCII, ending in a newline."""
    state = view.latest.state
    document = DayDocument(
        state.gameday,
        state.day,
        view.latest.title,
        view.latest.owner,
        str(view.status),
        int(view.exit_code),
        view.headline,
        [_cluster(record) for record in view.records],
        [_run(run) for run in view.runs],
        moments(view),
        lessons(view),
    )
    return to_text(add_rfc3339(rounded(to_builtins(document))))


def _cluster(record: ClusterRecord) -> DayCluster:
    state = record.state
    return DayCluster(
        record.cluster,
        record.simulated,
        str(state.status),
        state.plan_hash,
        state.seed,
        state.halts,
        state.approvals,
        state.waits,
        state.undelivered,
    )


def _run(run: RunView) -> DayDocumentRun:
    done = run.run
    return DayDocumentRun(
        run.cluster,
        done.key.entry,
        done.key.repetition,
        run.entry.experiment,
        done.seed,
        done.run,
        run.word,
        done.reason,
        done.gates_held,
        done.begun,
        done.ended,
        run.link,
    )
