"""Loads fleets: with their game day, and for each cluster its inventory and what is to be applied there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from chaos.app.day.deploy import DeployOptions, SecretSource, deployment_of
from chaos.app.day.deploy_needs import programs_of
from chaos.app.gameday import LoadedGameDay, current_time, load_game_day
from chaos.core.inventory import Inventory
from chaos.core.registry import PluginRegistry
from chaos.documents import gameday
from chaos.documents.document import read_text
from chaos.documents.inventory import load_inventory
from chaos.gameday.deploy.deployment import Deployment, Storage
from chaos.gameday.fleet_document import Fleet, FleetCluster, FleetSpec


@dataclass(frozen=True, slots=True)
class LoadedCluster:
    """A cluster of the fleet. ``inventory``: with the kubeconfig and context by which this process reaches it.

    ``programs``: that the inventory uses, and the image does not have.
    """

    name: str
    path: Path
    inventory: Inventory
    deployment: Deployment
    secrets: tuple[SecretSource, ...]
    programs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadedFleet:
    """A fleet with all that it refers to."""

    path: Path
    document: Fleet
    day: LoadedGameDay
    clusters: tuple[LoadedCluster, ...]

    @property
    def home(self) -> LoadedCluster:
        """The cluster with the fleet's own state."""
        return next(each for each in self.clusters if each.name == self.document.spec.home_name)

    @property
    def hash(self) -> str:
        """SHA-256 of all that the fleet would do: document, game day, inventories."""
        parts = [
            self.document.model_dump(mode="json", by_alias=True),
            self.day.hash,
            {each.name: read_text(each.path) for each in self.clusters},
        ]
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


def load_fleet(path: Path, registry: PluginRegistry, moment: datetime | None = None) -> LoadedFleet:
    """The fleet in ``path``; the window of its day must still open after ``moment``, by default now.

    No cluster is read. Raises BadInput, and UsageError for a cluster to which the day cannot be deployed.
    """
    moment = moment or current_time()
    files = gameday.load_fleet(path, registry, moment)
    day = load_game_day(files.gameday, registry, moment)
    clusters = tuple(
        _load_cluster(each, files.document, files.inventories[each.name], day, registry)
        for each in files.document.spec.clusters
    )
    return LoadedFleet(path, files.document, day, clusters)


def _load_cluster(
    cluster: FleetCluster, document: Fleet, path: Path, day: LoadedGameDay, registry: PluginRegistry
) -> LoadedCluster:
    inventory = load_inventory(path)
    options = _options(cluster, document.spec, document.metadata.name)
    deployment, secrets = deployment_of(day, path, registry, options)
    programs = programs_of(day.document.spec, inventory)
    reached = _reached_by(inventory, cluster, path.parent)
    return LoadedCluster(cluster.name, path, reached, deployment, secrets, programs)


def _options(cluster: FleetCluster, spec: FleetSpec, fleet_name: str) -> DeployOptions:
    storage = cluster.storage or spec.storage
    return DeployOptions(
        cluster.namespace or spec.namespace,
        cluster.image or spec.image,
        Storage(storage.size, storage.class_name or ""),
        cluster.secret or spec.secret or "",
        fleet_name,
    )


def _reached_by(inventory: Inventory, cluster: FleetCluster, folder: Path) -> Inventory:
    """The inventory with the kubeconfig and context of the fleet, which are for this process only."""
    update: dict[str, str] = {}
    if cluster.kubeconfig:
        update["kubeconfig"] = str(folder.absolute() / Path(cluster.kubeconfig).expanduser())
    if cluster.context:
        update["context"] = cluster.context
    assert inventory.cluster is not None  # noqa: S101 - the loader has refused labs
    return inventory.model_copy(update={"cluster": inventory.cluster.model_copy(update=update)})
