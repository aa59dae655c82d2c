"""A game day in words and as JSON: its plan, its state, and that of a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from chaos.app.day.document import PlannedRun, current_time, load_game_day, new_seed, outline, plan_runs
from chaos.cli.output import echo, to_json
from chaos.cli.run.plan import plan_lines
from chaos.core.duration import format_duration, timestamp
from chaos.core.errors import Exit, UsageError
from chaos.core.text import align_columns, printable
from chaos.gameday.fleet_state import Assessment, Observation, Phase, day_of, fleet_exit_code, matrix
from chaos.gameday.outline import Outline, OutlineEntry, PlannedMoment, PlannedOpening
from chaos.gameday.state import DayRun, DayState, describe, exit_code

_HEAD = ("entry", "status", "begun", "took", "run", "reason")
Seen = Mapping[str, tuple[Assessment, Observation]]


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
    """Who has halted the day and let it continue."""
    for halt in state.halts:
        reason = f": {halt.reason}" if halt.reason else ""
        yield printable(f"halted {timestamp(halt.at)} by {halt.by}{reason}")
        if halt.resumed_at is not None:
            yield printable(f"resumed {timestamp(halt.resumed_at)} by {halt.resumed_by}: {halt.resumed_because}")


def to_document(state: DayState) -> dict[str, Any]:
    """The state as JSON, with its status and its exit code."""
    document: dict[str, Any] = msgspec.to_builtins(state)
    return document | {"status": str(state.status), "exit_code": int(exit_code(state))}


def _row(run: DayRun) -> tuple[str, ...]:
    took = format_duration(round(run.ended - run.begun)) if run.begun is not None and run.ended is not None else ""
    begun = timestamp(run.begun) if run.begun is not None else ""
    return (str(run.key), run.verdict or str(run.status), begun, took, run.run, printable(run.reason))


def render_fleet(state: DayState, seen: Seen) -> Iterator[str]:
    """A line about the fleet, the matrix of clusters and entries, and what there is to say about single clusters."""
    yield describe(state)
    yield from align_columns(matrix(state, {name: observation for name, (_, observation) in seen.items()}))
    for run in state.runs:
        assessment, observation = seen[run.key.cluster]
        if about := list(_about(run.reason, assessment, observation)):
            yield printable(f"{run.key.cluster}: {'; '.join(about)}")
    yield from render_halts(state)


def fleet_document(state: DayState, seen: Seen) -> dict[str, Any]:
    """The fleet as JSON: its own state, and for each cluster what was read of it."""
    observations = [observation for _, observation in seen.values()]
    document: dict[str, Any] = msgspec.to_builtins(state)
    clusters = {name: _cluster(state, *each) for name, each in seen.items()}
    code = int(fleet_exit_code(state, observations))
    return document | {"status": str(state.status), "exit_code": code, "clusters": clusters}


def _cluster(state: DayState, assessment: Assessment, observation: Observation) -> dict[str, Any]:
    day = day_of(observation, state.day)
    return {
        "phase": str(assessment.phase),
        "reason": assessment.reason,
        "pending_undo": list(observation.pending_undo),
        "exit_code": None if day is None else int(exit_code(day)),
        "day": None if day is None else msgspec.to_builtins(day),
    }


def _about(reason: str, assessment: Assessment, observation: Observation) -> Iterator[str]:
    if reason:
        yield reason
    if assessment.phase not in (Phase.IDLE, Phase.FINISHED) and assessment.reason:
        yield f"{assessment.phase}, {assessment.reason}"
    if observation.pending_undo:
        yield f"pending undo of {', '.join(observation.pending_undo)}"


def show_plan(
    gameday: Path,
    inventory: Path | None,
    seed: int | None,
    at: str | None,
    count: int,
    reports: Path,
    as_json: bool,
) -> int:
    """Show when a GAMEDAY may run, what it would do and how long that takes. No side effects."""
    moment = _parse_moment(at) if at else current_time()
    day = load_game_day(gameday)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=day.zone)
    shown = outline(day, moment, count, new_seed() if seed is None else seed)
    runs = plan_runs(day, inventory, shown.seed, reports) if inventory else iter(())
    if as_json:
        planned = list(runs)
        click.echo(to_json(_document(shown, planned if inventory else None)))
    else:
        echo(*render_outline(shown))
        planned = []
        for run in runs:  # planning takes seconds each: show one as soon as it is known
            planned.append(run)
            echo(*render_run(run))
    return Exit.REFUSED if any(run.refused for run in planned) else Exit.HELD


def _parse_moment(text: str) -> datetime:
    """An ISO 8601 time; without an offset it is in the zone of the window. Raises UsageError."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--at: invalid time {text!r}", hint="write it like 2026-12-20T09:00, or ...Z for UTC"
        ) from None


def render_outline(outline: Outline) -> Iterator[str]:
    """Calendar, entries, duration and blast radius, a line each."""
    yield f"game day {outline.name}: {outline.title}"
    yield f"owner {outline.owner}"
    yield f"plan {outline.hash}, seed {outline.seed}"
    if outline.clusters:
        at_once = f", {outline.parallel} at once, {outline.order}" if len(outline.clusters) > 1 else ""
        yield f"clusters {', '.join(outline.clusters)}{at_once}"
    yield from _calendar(outline)
    yield from (f"gate {gate}" for gate in outline.gates)
    yield from (f"notify {receiver}" for receiver in outline.notify)
    yield ""
    yield f"duration {_duration(outline.expected, outline.at_most)} for all entries"
    yield f"worst blast radius {outline.worst} ({outline.worst_entry})"
    yield from (f"warning {warning}" for warning in outline.warnings)
    for number, entry in enumerate(outline.entries, 1):
        yield from _entry(number, entry)


def _calendar(outline: Outline) -> Iterator[str]:
    if outline.always_open:
        yield f"window in {outline.zone}, always open"
    else:
        yield f"window in {outline.zone}, {'open' if outline.is_open else 'closed'} at {_moment(outline.moment)}"
    for opening in () if outline.always_open else outline.openings:
        yield f"  open  {_span(opening)}"
    for start in outline.starts:
        note = f", passed over: {start.closed_because}" if start.closed_because else ""
        note = note or ("" if start.fits else ", the window closes before all entries are expected to end")
        yield f"  start {_moment(start.at)}{note}"


def _entry(number: int, entry: OutlineEntry) -> Iterator[str]:
    times = f", {len(entry.seeds)} times" if len(entry.seeds) > 1 else ""
    yield ""
    yield f"entry {number} {entry.name}: {entry.title}{times}"
    yield f"  file     {entry.experiment}"
    yield f"  seed     {', '.join(map(str, entry.seeds))}"
    if entry.clusters:
        yield f"  clusters {', '.join(entry.clusters)}"
    yield f"  duration {_duration(entry.expected, entry.at_most)} each"
    if entry.assumed:
        yield f"  assumes  {', '.join(f'{name} {format_duration(value)}' for name, value in entry.assumed.items())}"
    yield from (f"  target   {target}" for target in entry.blast_radius.targets)
    yield f"  actions  {', '.join(entry.blast_radius.actions)}"
    yield f"  radius   {entry.blast_radius}"
    yield from (f"  gate     {gate}" for gate in entry.gates)
    yield f"  violated {entry.on_violated}"
    yield f"  pause    {entry.pause}"


def render_run(run: PlannedRun) -> Iterator[str]:
    """The plan of one run, as ``nodefall plan`` prints it, or why it is refused."""
    yield ""
    yield f"== {run.entry}, run {run.repetition}, seed {run.seed}"
    if run.plan:
        yield from plan_lines(run.plan, run.loaded.experiment)
    if run.refused:
        yield f"refused: {run.refused.message}"
        yield from [f"hint: {run.refused.hint}"] if run.refused.hint else []


def _document(outline: Outline, runs: Sequence[PlannedRun] | None) -> dict[str, Any]:
    """One object; ``runs`` are there if they were planned on a cluster."""
    document: dict[str, Any] = msgspec.to_builtins(outline)
    if runs is not None:
        document["runs"] = [_run(run) for run in runs]
    return document


def _run(run: PlannedRun) -> dict[str, object]:
    refused = {"message": run.refused.message, "hint": run.refused.hint} if run.refused else None
    plan = msgspec.to_builtins(run.plan) if run.plan else None
    return {"entry": run.entry, "repetition": run.repetition, "seed": run.seed, "plan": plan, "refused": refused}


def _duration(expected: float, at_most: float) -> str:
    return f"{format_duration(expected)} expected, at most {format_duration(at_most)}"


def _span(opening: PlannedOpening) -> str:
    return f"{_moment(opening.begin)} to {_moment(opening.end) if opening.end else 'no end within ten years'}"


def _moment(moment: PlannedMoment) -> str:
    return moment.local if moment.local == moment.utc else f"{moment.local} ({moment.utc})"
