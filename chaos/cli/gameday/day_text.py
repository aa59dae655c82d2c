"""The state of a game day in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from chaos.core.duration import format_duration, timestamp
from chaos.core.text import align_columns, printable
from chaos.gameday.state import DayRun, DayState, describe, exit_code

_HEAD = ("entry", "status", "begun", "took", "run", "reason")


def render(state: DayState) -> Iterator[str]:
    """A line about the day, a table of its runs, then who has halted and approved it and what it waits for."""
    yield describe(state)
    yield f"plan {state.plan_hash}, seed {state.seed}"
    yield from align_columns([_HEAD, *map(_row, state.runs)])
    yield from render_halts(state)
    for approval in state.approvals:
        what = f"entry {approval.entry}" if approval.entry else "the day"
        stale = "" if approval.plan_hash == state.plan_hash else ", which does not count: of another plan"
        via = f" ({approval.via})" if approval.via else ""
        yield f"approved {timestamp(approval.at)} by {approval.by}{via}: {what}, plan {approval.plan_hash[:12]}{stale}"
    if state.waiting:
        until = f" until {timestamp(state.waiting.until)}" if state.waiting.until is not None else ""
        yield f"waiting since {timestamp(state.waiting.since)}{until} for {state.waiting.what}: {state.waiting.reason}"


def render_halts(state: DayState) -> Iterator[str]:
    """Who has halted the day and let it go on."""
    for halt in state.halts:
        reason = f": {halt.reason}" if halt.reason else ""
        yield printable(f"halted {timestamp(halt.at)} by {halt.by}{reason}")
        if halt.resumed_at is not None:
            yield printable(f"resumed {timestamp(halt.resumed_at)} by {halt.resumed_by}: {halt.resumed_because}")


def to_document(state: DayState) -> dict[str, Any]:
    """The state as JSON, with its status and its exit code."""
    document: dict[str, Any] = msgspec.to_builtins(state)
    return document | {"status": str(state.status), "exit_code": int(exit_code(state))}


def to_json(documents: Any) -> str:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(documents), indent=2).decode()


def _row(run: DayRun) -> tuple[str, ...]:
    took = format_duration(round(run.ended - run.begun)) if run.begun is not None and run.ended is not None else ""
    begun = timestamp(run.begun) if run.begun is not None else ""
    return (str(run.key), run.verdict or str(run.status), begun, took, run.run, printable(run.reason))
