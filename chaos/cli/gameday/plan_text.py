"""The plan of a game day in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from chaos.app.day.document import PlannedRun
from chaos.cli.plan import plan_lines
from chaos.core.duration import format_duration
from chaos.gameday.outline import Outline, OutlineEntry, PlannedMoment, PlannedOpening


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


def to_json(outline: Outline, runs: Sequence[PlannedRun] | None) -> str:
    """One object; ``runs`` are there if they were planned on a cluster."""
    document = msgspec.to_builtins(outline)
    if runs is not None:
        document["runs"] = [_run(run) for run in runs]
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


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
