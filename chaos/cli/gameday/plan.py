"""The plan of a game day, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from chaos.app.day.document import PlannedRun, current_time, load_game_day, new_seed, outline, plan_runs
from chaos.cli.output import echo, to_json
from chaos.cli.run.plan import plan_lines
from chaos.core.duration import format_duration
from chaos.core.errors import Exit, UsageError
from chaos.gameday.outline import Outline, OutlineEntry, PlannedMoment, PlannedOpening


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
