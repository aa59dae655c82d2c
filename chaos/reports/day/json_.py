"""``report.json`` of a day: its runs, what happened and what was learned, for programs.

One object; keys sorted, in snake_case; times in seconds since the epoch; ``version`` is VERSION.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from chaos.reports.day.lessons import lessons
from chaos.reports.day.moments import moments
from chaos.reports.day.view import DayView, RunView
from chaos.reports.run.json_ import to_text

VERSION = 1


def render(view: DayView) -> str:
    """Render the day as JSON, in ASCII, ending in a newline."""
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


def _cluster(record: Any) -> dict[str, Any]:
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
