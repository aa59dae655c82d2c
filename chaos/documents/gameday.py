"""GameDay and Fleet files, with the experiments, game days and inventories that they refer to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from chaos.core.experiment import Expectation, Experiment
from chaos.core.inventory import Inventory
from chaos.core.registry import PluginRegistry
from chaos.documents.document import open_document
from chaos.documents.expectations import DeclaredNames, check_expectations, parameter_key, report_duplicates
from chaos.documents.experiment import load_experiment, load_referenced, load_with_overrides
from chaos.documents.inventory import load_inventory
from chaos.documents.problems import Cursor, check_document
from chaos.documents.wording import did_you_mean
from chaos.gameday.calendar import Calendar, starts, times
from chaos.gameday.document import GameDay
from chaos.gameday.fleet_document import Fleet
from chaos.gameday.time_rules import Schedule, Window

M = TypeVar("M", bound=BaseModel)
_ALL_NODES = "all"
_NO_NAMES = DeclaredNames([], [], [], {"probe": [], "query": []})
_REAL_CLUSTER = "give the inventory of a real cluster, which has expectUID"


@dataclass(frozen=True, slots=True)
class EntryFile:
    """The experiment of an entry, with its overrides and the abort conditions of the day, and its name on the day.

    ``is_changed``: by these, so that it differs from the file.
    """

    name: str
    path: Path
    experiment: Experiment
    is_changed: bool


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
    root = open_document(path, "GameDay")
    found = check_document(GameDay, root)
    spec = root.get("spec")
    _check_calendar(spec, now)
    check_expectations(spec, _NO_NAMES, registry)
    _check_abort(spec, registry)
    inventories = dict(_load_clusters(spec, path.parent))
    files = tuple(_load_entries(spec, path.parent, registry))
    day = root.errors.require(found)
    for condition in day.spec.abort:
        registry.bind_expectation(condition)
    return GameDayFiles(day, tuple(_with_abort(file, day.spec.abort) for file in files), inventories)


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


def _with_abort(file: EntryFile, abort: list[Expectation]) -> EntryFile:
    """The experiment with the abort conditions of the day besides its own."""
    experiment = file.experiment
    added = [condition for condition in abort if condition not in experiment.spec.abort]
    if not added:
        return file
    spec = experiment.spec.model_copy(update={"abort": [*experiment.spec.abort, *added]})
    return replace(file, experiment=experiment.model_copy(update={"spec": spec}), is_changed=True)


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
        changed = load_with_overrides(entry, path, registry)
        yield EntryFile(name, path, changed or plain, is_changed=changed is not None)


def _check_name(entry: Cursor, name: str, first_lines: dict[str, int]) -> None:
    place = entry.get("name") or entry.get("experiment")
    line = place.node.mark.line if place.node else 0
    if first_lines.setdefault(name, line) != line:
        hint = "give it another name; for the same experiment several times, write repeat"
        place.report(f"duplicate entry {name!r}, first in line {first_lines[name]}", hint)


@dataclass(frozen=True, slots=True)
class FleetFiles:
    """A fleet. ``inventories``: paths by the name of the cluster."""

    document: Fleet
    gameday: Path
    inventories: dict[str, Path]


def load_fleet(path: Path, registry: PluginRegistry, now: datetime) -> FleetFiles:
    """The fleet in ``path``. ``now``: the window of its game day must still open after it.

    Raises BadInput with all problems, those of the game day and of the inventories included.
    """
    root = open_document(path, "Fleet")
    found = check_document(Fleet, root)
    spec = root.get("spec")
    folder = path.parent
    load_referenced(spec.get("gameday"), folder, lambda file: load_game_day(file, registry, now))
    inventories = _load_fleet_clusters(spec, folder)
    _check_home(spec)
    fleet = root.errors.require(found)
    return FleetFiles(fleet, folder / fleet.spec.gameday, inventories)


def _load_fleet_clusters(spec: Cursor, folder: Path) -> dict[str, Path]:
    clusters = list(spec.get("clusters").items())
    report_duplicates((cluster.get("name") for cluster in clusters), "cluster")
    report_duplicates((cluster.get("inventory") for cluster in clusters), "inventory")
    found, names = {}, dict[str, str]()  # names: by the UID of the cluster
    for cluster in clusters:
        place, name = cluster.get("inventory"), cluster.get("name").text or ""
        inventory = load_referenced(place, folder, load_inventory)
        if inventory:
            _check_inventory(place, inventory)
            settings = inventory.cluster
            uid = settings.expect_uid if settings and not settings.simulated else None  # labs of one seed share it
            if uid and (other := names.setdefault(uid, name)) != name:
                place.report(f"it is the same cluster as {other}: expectUID is {uid} in both inventories")
        found[name] = folder / (place.text or "")
    return found


def _check_inventory(place: Cursor, inventory: Inventory) -> None:
    if inventory.cluster is None:
        place.report("a lab cannot be part of a fleet, as it is started for a command", _REAL_CLUSTER)
    elif not inventory.cluster.expect_uid:
        hint = "kubectl get namespace kube-system -o 'jsonpath={.metadata.uid}'"
        place.report("expectUID is missing in this inventory, so the wrong cluster could be under test", hint)


def _check_home(spec: Cursor) -> None:
    home = spec.get("home")
    names = [name for cluster in spec.get("clusters").items() if (name := cluster.get("name").text)]
    if home.text and home.text not in names:
        home.report(f"unknown cluster {home.text!r}", did_you_mean(home.text, names))
