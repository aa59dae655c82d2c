"""GameDay files, with the experiments and inventories that they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from chaos.core.errors import BadInput
from chaos.core.experiment import Expectation, Experiment
from chaos.core.registry import PluginRegistry
from chaos.documents.document import expect_kind, read_document
from chaos.documents.error_collector import Cursor, ErrorCollector, did_you_mean
from chaos.documents.expectations import DeclaredNames, check_expectations, parameter_key
from chaos.documents.experiment import load_experiment
from chaos.documents.inventory import load_inventory
from chaos.documents.overrides import load_with_overrides
from chaos.documents.plugin_lookup import report_duplicates
from chaos.documents.pydantic_errors import check_model
from chaos.documents.tree import MappingEntry, to_builtins
from chaos.gameday.calendar import Calendar
from chaos.gameday.document import GameDay
from chaos.gameday.starts import starts, times
from chaos.gameday.time_rules import Schedule, Window

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
_ALL_NODES = "all"
_NO_NAMES = DeclaredNames([], [], [], {"probe": [], "query": []})


@dataclass(frozen=True, slots=True)
class EntryFile:
    """The experiment of an entry, with its overrides and the abort conditions of the day, and its name on the day."""

    name: str
    path: Path
    experiment: Experiment


@dataclass(frozen=True, slots=True)
class GameDayFiles:
    """A game day; ``entries`` are in the order of the document, ``inventories`` are by the name of the cluster."""

    document: GameDay
    entries: tuple[EntryFile, ...]
    inventories: dict[str, Path]


def load_game_day(path: Path, registry: PluginRegistry, now: datetime) -> GameDayFiles:
    """The game day in ``path``. ``now``: the window must still open after it.

    Raises BadInput with all problems, those of its experiments and inventories included.
    """
    root = read_document(path)
    expect_kind(path, root, "GameDay")
    errors = ErrorCollector(str(path))
    day = check_model(GameDay, root, to_builtins(root), errors)
    spec = Cursor(errors, MappingEntry(root.mark, root)).get("spec")
    _check_calendar(spec, now)
    check_expectations(spec, _NO_NAMES, registry)
    _check_abort(spec, registry)
    inventories = dict(_load_clusters(spec, path.parent))
    files = tuple(_load_entries(spec, path.parent, registry))
    errors.raise_if_any()
    assert isinstance(day, GameDay)  # noqa: S101 - None only with a problem
    for condition in day.spec.abort:
        registry.bind_expectation(condition)
    entries = (replace(file, experiment=_with_abort(file.experiment, day.spec.abort)) for file in files)
    return GameDayFiles(day, tuple(entries), inventories)


def _check_abort(spec: Cursor, registry: PluginRegistry) -> None:
    """A condition is judged between the entries, too: it refers to no step and to no target."""
    for expectation in spec.get("abort").items():
        assertion = registry.assertions.get(expectation.get("assert").text or "")
        if assertion is None:
            continue
        given = expectation.get("with")
        for field in assertion.moment_fields:
            given.get(parameter_key(assertion, field)).report(
                "a game day has no steps to refer to", "use a condition that refers to no step"
            )
        for field in assertion.node_fields:
            node = given.get(parameter_key(assertion, field))
            if node.text and node.text != _ALL_NODES:
                node.report(f"a game day has no target {node.text!r}", f"write {_ALL_NODES}, or nothing")


def _with_abort(experiment: Experiment, abort: list[Expectation]) -> Experiment:
    """The experiment with the abort conditions of the day besides its own."""
    added = [condition for condition in abort if condition not in experiment.spec.abort]
    if not added:
        return experiment
    spec = experiment.spec.model_copy(update={"abort": [*experiment.spec.abort, *added]})
    return experiment.model_copy(update={"spec": spec})


def _check_calendar(spec: Cursor, now: datetime) -> None:
    window, schedule = _valid(Window, spec.get("window")), _valid(Schedule, spec.get("schedule"))
    is_sound = window is not None or not spec.get("window")
    calendar = Calendar(window)
    if calendar.next_opening(now) is None:
        hint = "remove a freeze, or add hours"
        spec.get("window").report("the window never opens: freezes cover all its hours for the next ten years", hint)
        is_sound = False
    if schedule:
        _check_schedule(spec.get("schedule", "cron"), schedule, calendar, now if is_sound else None)


def _check_schedule(place: Cursor, schedule: Schedule, calendar: Calendar, now: datetime | None) -> None:
    """``now``: a time of the schedule must lie in the window after it; None if the window is invalid."""
    try:
        first = next(times(schedule, calendar, now or datetime(2026, 1, 1, tzinfo=UTC)), None)
    except ValueError as error:
        message, _, hint = str(error).partition("; ")
        place.report(message, hint)
        return
    if first is None:
        place.report(f"the schedule {schedule.cron!r} has no time: there is no such date")
    elif now and next(starts(schedule, calendar, now), None) is None:
        place.report("no time of the schedule lies in the window", "correct the schedule, or the hours of the window")


def _valid(model: type[M], place: Cursor) -> M | None:
    """The value at ``place``; None if it is missing, or invalid, which is reported with the whole document."""
    if not place:
        return None
    try:
        return model.model_validate(place.value, by_alias=True, by_name=False)
    except ValidationError:
        return None


def _load_clusters(spec: Cursor, folder: Path) -> Iterator[tuple[str, Path]]:
    clusters = list(spec.get("clusters").items())
    report_duplicates((cluster.get("name") for cluster in clusters), "cluster")
    for cluster in clusters:
        place = cluster.get("inventory")
        load_referenced(place, folder, load_inventory)
        yield cluster.get("name").text or "", folder / (place.text or "")


def load_referenced(place: Cursor, folder: Path, load: Callable[[Path], T]) -> T | None:
    """The file that ``place`` names, None after its problems were reported."""
    if not place.text:
        return None
    path = folder / place.text
    if "\0" in place.text or not path.is_file():
        place.report(f"file not found: {place.text!r}", "paths are relative to this file")
        return None
    try:
        return load(path)
    except BadInput as error:
        place.errors.problems += error.problems
        return None


def _load_entries(spec: Cursor, folder: Path, registry: PluginRegistry) -> Iterator[EntryFile]:
    clusters = [name for cluster in spec.get("clusters").items() if (name := cluster.get("name").text)]
    first_lines: dict[str, int] = {}
    for entry in spec.get("entries").items():
        place = entry.get("experiment")
        plain = load_referenced(place, folder, lambda path: load_experiment(path, registry))
        for cluster in entry.get("clusters").items():
            if cluster.text and cluster.text not in clusters:
                cluster.report(f"unknown cluster {cluster.text!r}", did_you_mean(cluster.text, clusters))
        report_duplicates(entry.get("clusters").items(), "cluster")
        if plain is None:
            continue
        name = entry.get("name").text or plain.metadata.name
        _check_name(entry, name, first_lines)
        path = folder / (place.text or "")
        yield EntryFile(name, path, load_with_overrides(entry, path, registry) or plain)


def _check_name(entry: Cursor, name: str, first_lines: dict[str, int]) -> None:
    place = entry.get("name") or entry.get("experiment")
    line = place.node.mark.line if place.node else 0
    if first_lines.setdefault(name, line) != line:
        hint = "give it another name; for the same experiment several times, write repeat"
        place.report(f"duplicate entry {name!r}, first in line {first_lines[name]}", hint)
