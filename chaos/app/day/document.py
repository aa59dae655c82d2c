"""Loads game days, and what follows from them: their hash, permissions, new state and plans."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from chaos.app.run.experiment import new_run_id, plan
from chaos.app.wiring.connect import connect_cluster
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError, Refused
from chaos.core.inventory import Inventory
from chaos.core.labels import GAME_DAY_PREFIX, LOCK_NAMESPACE
from chaos.core.permission import Permission
from chaos.core.plan import Plan
from chaos.core.registry import PluginRegistry
from chaos.documents import gameday
from chaos.documents.document import read_text
from chaos.documents.inventory import as_inventory
from chaos.documents.manifests import load_workload
from chaos.engine.connection import ClusterConnection, refuse_before_side_effects
from chaos.engine.load import LoadedExperiment, experiment_document, required_permissions
from chaos.engine.registry import load_registry
from chaos.gameday.calendar import Calendar, why_not_due
from chaos.gameday.document import ApprovalGate, GameDay, GameDayEntry
from chaos.gameday.outline import Outline, OutlineRequest, make_outline
from chaos.gameday.state import DayState, DayStatus, entry_seeds, runs_on


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
    registry: PluginRegistry = field(repr=False, compare=False)

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


def load_game_day(path: Path, moment: datetime | None = None, registry: PluginRegistry | None = None) -> LoadedGameDay:
    """The game day in ``path``; its window must still open after ``moment``, by default now. Raises BadInput."""
    registry = registry or load_registry()
    files = gameday.load_game_day(path, registry, moment or current_time())
    entries = []
    for file, entry in zip(files.entries, files.document.spec.entries, strict=True):
        workload = file.experiment.spec.workload
        manifests = load_workload(file.path, workload.manifests) if workload else []
        text = experiment_document(file.experiment) if file.is_changed else None
        loaded = LoadedExperiment(file.path, file.experiment, manifests, registry, text)
        entries.append(LoadedEntry(file.name, entry, loaded))
    return LoadedGameDay(path, files.document, tuple(entries), files.inventories, registry)


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


def outline(day: LoadedGameDay, moment: datetime, count: int, seed: int) -> Outline:
    """The outline of ``day`` from ``moment`` on with ``count`` openings and starts. No side effects, no cluster."""
    named = [(item.name, item.loaded.experiment) for item in day.entries]
    return make_outline(day.document, named, OutlineRequest(moment, count, seed, day.hash))


def cluster_name(day: LoadedGameDay, inventory: Path) -> str:
    """The name that the day gives to the cluster of this inventory, "" if it does not list it."""
    return next((name for name, path in day.inventories.items() if path.resolve() == inventory.resolve()), "")


def only_inventory(day: LoadedGameDay) -> Path | None:
    """The inventory of a day with one cluster."""
    return next(iter(day.inventories.values())) if len(day.inventories) == 1 else None


def plan_runs(day: LoadedGameDay, inventory: Path, seed: int, reports: Path) -> Iterator[PlannedRun]:
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
                yield _plan_run(item, number, run_seed, connection, reports)


def _plan_run(item: LoadedEntry, number: int, seed: int, connection: ClusterConnection, reports: Path) -> PlannedRun:
    run = new_run_id(item.loaded)
    try:
        planned, _ = plan(item.loaded, connection, seed, run, reports=reports)
    except NodefallError as error:
        return PlannedRun(item.name, number, seed, item.loaded, None, error)
    return PlannedRun(item.name, number, seed, item.loaded, planned)


def new_state(
    day: LoadedGameDay, cluster: str, day_id: str, seed: int | None, now: float, impaired: tuple[str, ...]
) -> DayState:
    """The state of a day of which nothing has begun, without a holder. Raises Refused if it has no entry.

    ``cluster``: its name in the document, or "". ``day_id``: "" for the date in the zone of the window. ``impaired``:
    nodes that are not as they should be now.
    """
    drawn = new_seed() if seed is None else seed
    runs = runs_on(day.document, [entry.name for entry in day.entries], drawn, cluster)
    if not runs:
        raise Refused(f"game day {day.document.metadata.name} has no entry for the cluster {cluster}")
    return DayState(
        day=day_id or datetime.fromtimestamp(now, UTC).astimezone(day.zone).date().isoformat(),
        gameday=day.document.metadata.name,
        plan_hash=day.hash,
        seed=drawn,
        created=now,
        order="by-entry",
        parallel=1,
        holder="",
        epoch=0,
        runs=runs,
        impaired=impaired,
    )


def is_under_way(stored: DayState | None) -> bool:
    """Whether there is a day that has begun, and is not finished."""
    return stored is not None and stored.status is not DayStatus.FINISHED and stored.has_begun


def refuse_unless_due(day: LoadedGameDay, stored: DayState | None, fresh: DayState) -> None:
    """Raises Refused if a day with a schedule is not under way, and no start is due when ``fresh`` was created."""
    spec = day.document.spec
    if spec.schedule is None or is_under_way(stored) or (stored is not None and stored.day == fresh.day):
        return
    last = datetime.fromtimestamp(_begin_of(stored), UTC) if stored and stored.status is DayStatus.FINISHED else None
    now = datetime.fromtimestamp(fresh.created, UTC)
    if reason := why_not_due(spec.schedule, Calendar(spec.window), last, now):
        raise Refused(f"game day {day.document.metadata.name} did not start: {reason}")


def _begin_of(finished: DayState) -> float:
    """When the first run began or was skipped: an approval may have created the day long before its start."""
    times = [run.begun if run.begun is not None else run.ended for run in finished.runs]
    return max(finished.created, min((t for t in times if t is not None), default=finished.created))


def day_permissions(day: LoadedGameDay, inventory: Inventory | None) -> list[Permission]:
    """Permissions of all entries, and for the lock of the day; its state is in a ConfigMap as journals are."""
    namespace = inventory.cluster.namespace if inventory and inventory.cluster else LOCK_NAMESPACE
    lease = f"{GAME_DAY_PREFIX}{day.document.metadata.name}"
    found = {
        Permission("coordination.k8s.io", "leases", verb, namespace, lease) for verb in ("get", "update", "delete")
    }
    for entry in day.entries:
        found.update(required_permissions(entry.loaded, inventory))
    return sorted(permission for permission in found if not _is_covered(permission, found))


def _is_covered(permission: Permission, others: set[Permission]) -> bool:
    return any(other != permission and other.covers(permission) for other in others)
