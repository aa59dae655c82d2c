"""The outline of a game day: what ``gameday plan`` shows without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct

from chaos.core.duration import format_duration, parse_duration
from chaos.core.experiment import Experiment
from chaos.core.moments import rfc3339
from chaos.gameday.calendar import Calendar, Opening, starts, times
from chaos.gameday.document import GameDay, GameDayEntry, Pause
from chaos.gameday.estimates import BlastRadius, blast_radius, experiment_duration, worst
from chaos.gameday.state import entry_seeds

_MAX_PASSED_OVER = 20  # starts while the window is closed that are listed


class PlannedMoment(Struct, frozen=True):
    """A moment as ISO 8601: in the zone of the window, with its offset, and in UTC."""

    local: str
    utc: str


class PlannedOpening(Struct, frozen=True):
    """``end`` is None if the window does not close within ten years."""

    begin: PlannedMoment
    end: PlannedMoment | None


class PlannedStart(Struct, frozen=True):
    """A time of the schedule. ``closed_because``: why nothing starts then; ``fits``: the day ends before the window."""

    at: PlannedMoment
    closed_because: str = ""
    fits: bool = True


class OutlineEntry(Struct, frozen=True):
    """Seconds of one run: ``expected`` by its deadlines, ``at_most`` by maxDuration and recovery."""

    name: str
    experiment: str
    title: str
    seeds: tuple[int, ...]
    clusters: tuple[str, ...]
    expected: float
    at_most: float
    assumed: dict[str, float]
    blast_radius: BlastRadius
    gates: tuple[str, ...]
    on_violated: str
    pause: str


class Outline(Struct, frozen=True):
    """``hash``: of all that the day would do; ``seed``: of the day; ``moment``: from which the calendar is shown.

    ``expected`` and ``at_most``: seconds of all entries with the pauses between them.
    """

    name: str
    title: str
    owner: str
    hash: str
    seed: int
    zone: str
    order: str
    parallel: int
    clusters: tuple[str, ...]
    moment: PlannedMoment
    is_open: bool
    always_open: bool
    openings: tuple[PlannedOpening, ...]
    starts: tuple[PlannedStart, ...]
    gates: tuple[str, ...]
    notify: tuple[str, ...]
    expected: float
    at_most: float
    worst: BlastRadius
    worst_entry: str
    entries: tuple[OutlineEntry, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutlineRequest:
    """``moment``: from which the calendar is shown; ``count``: of openings and of starts; ``seed``: of the day."""

    moment: datetime
    count: int
    seed: int
    hash: str


def make_outline(day: GameDay, experiments: Sequence[tuple[str, Experiment]], request: OutlineRequest) -> Outline:
    """The outline of ``day``; ``experiments`` are the names and experiments of its entries, overrides applied."""
    spec, calendar = day.spec, Calendar(day.spec.window)
    pairs = list(zip(spec.entries, experiments, strict=True))
    entries = tuple(_entry(day, entry, *named, request.seed) for entry, named in pairs)
    expected, at_most = _expected(day, entries), _at_most(day, entries)
    harm = worst([entry.blast_radius for entry in entries])
    openings = tuple(islice(calendar.openings(request.moment), request.count))
    return Outline(
        name=day.metadata.name,
        title=spec.title,
        owner=spec.owner,
        hash=request.hash,
        seed=request.seed,
        zone=calendar.window.zone,
        order=spec.order,
        parallel=spec.parallel,
        clusters=tuple(cluster.name for cluster in spec.clusters),
        moment=planned_moment(request.moment, calendar),
        is_open=calendar.is_open(request.moment),
        always_open=calendar.always_open,
        openings=tuple(_opening(opening, calendar) for opening in openings),
        starts=_starts(day, calendar, request, expected),
        gates=tuple(map(str, spec.gates)),
        notify=tuple(map(str, spec.notify)),
        expected=expected,
        at_most=at_most,
        worst=harm,
        worst_entry=next(entry.name for entry in entries if entry.blast_radius == harm),
        entries=entries,
        warnings=_warnings(entries, openings, expected),
    )


def _entry(day: GameDay, entry: GameDayEntry, name: str, experiment: Experiment, seed: int) -> OutlineEntry:
    duration = experiment_duration(experiment)
    return OutlineEntry(
        name=name,
        experiment=entry.experiment,
        title=experiment.spec.title,
        seeds=entry_seeds(entry, name, seed),
        clusters=tuple(entry.clusters or (cluster.name for cluster in day.spec.clusters)),
        expected=duration.expected,
        at_most=duration.at_most,
        assumed=dict(duration.assumed),
        blast_radius=blast_radius(experiment),
        gates=tuple(map(str, entry.gates)),
        on_violated=entry.on_violated or day.spec.on_violated,
        pause=_describe_pause(_pause(day, entry)),
    )


def _pause(day: GameDay, entry: GameDayEntry) -> Pause:
    return entry.pause or day.spec.pause


def _describe_pause(pause: Pause) -> str:
    least = parse_duration(pause.at_least)
    parts = [f"at least {format_duration(least)}"] if least else []
    parts += [f"until the cluster has recovered, at most {pause.recovery}"] if pause.recovery else []
    return ", ".join(parts) or "none"


def _expected(day: GameDay, entries: Sequence[OutlineEntry]) -> float:
    pauses = [parse_duration(_pause(day, entry).at_least) for entry in day.spec.entries]
    return _total(day, entries, [entry.expected for entry in entries], pauses)


def _at_most(day: GameDay, entries: Sequence[OutlineEntry]) -> float:
    pauses = [_pause(day, entry) for entry in day.spec.entries]
    longest = [parse_duration(p.at_least) + (parse_duration(p.recovery) if p.recovery else 0.0) for p in pauses]
    return _total(day, entries, [entry.at_most for entry in entries], longest)


def _total(day: GameDay, entries: Sequence[OutlineEntry], seconds: Sequence[float], pauses: Sequence[float]) -> float:
    """Seconds of all runs with the pauses between them: those of one cluster in sequence, ``parallel`` at once."""
    totals = []
    for cluster in [each.name for each in day.spec.clusters] or [""]:
        own = [n for n, entry in enumerate(entries) if not entry.clusters or cluster in entry.clusters]
        runs = [n for n in own for _ in entries[n].seeds]
        totals.append(sum(seconds[n] for n in runs) + sum(pauses[n] for n in runs[:-1]))
    lanes = [0.0] * day.spec.parallel
    for total in totals:  # the next cluster begins where one has ended first
        lanes[lanes.index(min(lanes))] += total
    return max(lanes)


def _starts(day: GameDay, calendar: Calendar, request: OutlineRequest, seconds: float) -> tuple[PlannedStart, ...]:
    """The next starts, and what is passed over before the last of them as the window is closed."""
    if day.spec.schedule is None:
        return ()
    schedule = day.spec.schedule
    inside = list(islice(starts(schedule, calendar, request.moment), request.count))
    following = islice(times(schedule, calendar, request.moment), request.count + _MAX_PASSED_OVER)
    closed = [(at, calendar.closed_because(at)) for at in following if inside and at < inside[-1]]
    planned = [(at, "") for at in inside] + [(at, reason) for at, reason in closed if reason][:_MAX_PASSED_OVER]
    return tuple(
        PlannedStart(planned_moment(at, calendar), reason, calendar.fits(at, seconds)) for at, reason in sorted(planned)
    )


def _opening(opening: Opening, calendar: Calendar) -> PlannedOpening:
    end = planned_moment(opening.end, calendar) if opening.end else None
    return PlannedOpening(planned_moment(opening.begin, calendar), end)


def planned_moment(moment: datetime, calendar: Calendar) -> PlannedMoment:
    """``moment`` in both zones, to the second."""
    local = moment.astimezone(calendar.zone).isoformat(timespec="seconds")
    return PlannedMoment(local, rfc3339(moment.timestamp(), "seconds"))


def _warnings(entries: Sequence[OutlineEntry], openings: Sequence[Opening], expected: float) -> tuple[str, ...]:
    if not openings or any(opening.end is None for opening in openings):
        return ()
    longest = max((opening.end - opening.begin for opening in openings if opening.end), default=timedelta())
    room = format_duration(longest.total_seconds())
    late = [
        f"{entry.name} is expected to take {format_duration(entry.expected)}, the longest of these openings is {room}"
        for entry in entries
        if entry.expected > longest.total_seconds()
    ]
    if not late and expected > longest.total_seconds():
        late = [
            f"the day is expected to take {format_duration(expected)}; it continues when the window opens after {room}"
        ]
    return tuple(late)
