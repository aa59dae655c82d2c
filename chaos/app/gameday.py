"""Loads game days, and plans their entries on a cluster."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from chaos.app.connect import ClusterConnection, connect_cluster, refuse_before_side_effects
from chaos.app.inventories import as_inventory
from chaos.app.load import LoadedExperiment
from chaos.app.plan import new_run_id, plan
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError
from chaos.core.plan import Plan
from chaos.core.registry import PluginRegistry
from chaos.documents import gameday
from chaos.documents.document import read_text
from chaos.documents.manifests import load_manifests
from chaos.gameday.calendar import Calendar
from chaos.gameday.document import ApprovalGate, GameDay, GameDayEntry
from chaos.gameday.outline import Outline, OutlineRequest, make_outline
from chaos.gameday.state import entry_seeds


@dataclass(frozen=True, slots=True)
class LoadedEntry:
    """An entry with its experiment, overrides applied and written out. ``name`` is unique on the day."""

    name: str
    entry: GameDayEntry
    loaded: LoadedExperiment


@dataclass(frozen=True, slots=True)
class LoadedGameDay:
    """A game day with all that it refers to. ``inventories``: files by the name of the cluster."""

    path: Path
    document: GameDay
    entries: tuple[LoadedEntry, ...]
    inventories: dict[str, Path]

    @property
    def zone(self) -> ZoneInfo:
        """The zone of the window."""
        return Calendar(self.document.spec.window).zone

    @property
    def hash(self) -> str:
        """SHA-256 of all that the day would do: document, experiments, manifests, its inventories, but not the seed."""
        parts = [
            self.document.model_dump(mode="json", by_alias=True),
            [(item.name, item.loaded.experiment.model_dump(mode="json", by_alias=True)) for item in self.entries],
            [item.loaded.manifests for item in self.entries],
            {name: read_text(path) for name, path in self.inventories.items()},
        ]
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run of an entry on a cluster: its plan, or why it is refused."""

    entry: str
    repetition: int  # from 1
    seed: int
    loaded: LoadedExperiment
    plan: Plan | None
    refused: NodefallError | None = None


def load_game_day(path: Path, registry: PluginRegistry, moment: datetime | None = None) -> LoadedGameDay:
    """The game day in ``path``; its window must still open after ``moment``, by default now. Raises BadInput."""
    files = gameday.load_game_day(path, registry, moment or current_time())
    entries = []
    for file, entry in zip(files.entries, files.document.spec.entries, strict=True):
        workload = file.experiment.spec.workload
        manifests = load_manifests([file.path.parent / name for name in workload.manifests]) if workload else []
        loaded = LoadedExperiment(file.path, file.experiment, manifests).with_experiment(file.experiment)
        entries.append(LoadedEntry(file.name, entry, loaded))
    return LoadedGameDay(path, files.document, tuple(entries), files.inventories)


def approvers(day: LoadedGameDay, entry: str) -> tuple[str, ...]:
    """The persons whose approval of this entry, or of the whole day (""), some gate asks for, sorted."""
    entries = (item.entry for item in day.entries if entry in ("", item.name))
    gates = chain(day.document.spec.gates, *(each.gates for each in entries))
    return tuple(sorted({person for gate in gates if isinstance(gate, ApprovalGate) for person in gate.by}))


def current_time() -> datetime:
    """Now, by the clock of this machine."""
    clock = SystemClock()
    try:
        return datetime.fromtimestamp(clock.now(), UTC)
    finally:
        clock.close()


def new_seed() -> int:
    """A random seed for a day."""
    return secrets.randbits(32)


def outline(day: LoadedGameDay, registry: PluginRegistry, moment: datetime, count: int, seed: int) -> Outline:
    """The outline of ``day`` from ``moment`` on with ``count`` openings and starts. No side effects, no cluster."""
    named = [(item.name, item.loaded.experiment) for item in day.entries]
    return make_outline(day.document, named, registry, OutlineRequest(moment, count, seed, day.hash))


def cluster_name(day: LoadedGameDay, inventory: Path) -> str:
    """The name that the day gives to the cluster of this inventory, "" if it does not list it."""
    return next((name for name, path in day.inventories.items() if path.resolve() == inventory.resolve()), "")


def only_inventory(day: LoadedGameDay) -> Path | None:
    """The inventory of a day with one cluster."""
    return next(iter(day.inventories.values())) if len(day.inventories) == 1 else None


def plan_runs(
    day: LoadedGameDay, inventory: Path, registry: PluginRegistry, seed: int, reports: Path
) -> Iterator[PlannedRun]:
    """Each run of the day on the cluster of ``inventory``, in order: those of that cluster if the day lists it.

    No side effects. A refusal of one run is no reason not to plan the others. Raises NodefallError if the cluster or
    the inventory cannot be used.
    """
    cluster = cluster_name(day, inventory)
    loaded = as_inventory(inventory)
    entries = [item for item in day.entries if not cluster or cluster in (item.entry.clusters or [cluster])]
    with (
        refuse_before_side_effects(),
        connect_cluster(loaded, seed=seed) as connection,
        connection.clock.participant(),
    ):
        for item in entries:
            for number, run_seed in enumerate(entry_seeds(item.entry, item.name, seed), 1):
                yield _plan_run(item, number, run_seed, connection, registry, reports)


def _plan_run(
    item: LoadedEntry, number: int, seed: int, connection: ClusterConnection, registry: PluginRegistry, reports: Path
) -> PlannedRun:
    run = new_run_id(item.loaded)
    try:
        planned, _ = plan(item.loaded, connection, registry, seed, run, reports=reports)
    except NodefallError as error:
        return PlannedRun(item.name, number, seed, item.loaded, None, error)
    return PlannedRun(item.name, number, seed, item.loaded, planned)
