"""Loads fleets, with their game day and what is to be applied to each cluster, and the permissions for that."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from chaos.app.day.deploy import DeployOptions, SecretSource, deployment_of
from chaos.app.day.deploy_needs import programs_of
from chaos.app.day.document import LoadedGameDay, current_time, load_game_day
from chaos.cluster.workload import collection_path
from chaos.core.api_path import object_path
from chaos.core.files import absolute_paths
from chaos.core.inventory import Inventory
from chaos.core.labels import GAME_DAY_PREFIX
from chaos.core.permission import Permission, permission_for_request
from chaos.core.registry import PluginRegistry
from chaos.documents import gameday
from chaos.documents.document import read_text
from chaos.documents.inventory import load_inventory
from chaos.engine.registry import load_registry
from chaos.gameday.deploy.deployment import Deployment, Storage
from chaos.gameday.deploy.manifests import NOT_DELETED, shared_manifests
from chaos.gameday.fleet_document import Fleet, FleetCluster, FleetSpec
from chaos.gameday.fleet_state import fleet_day_name

_LEASES = "coordination.k8s.io"


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


def load_fleet(path: Path, moment: datetime | None = None, registry: PluginRegistry | None = None) -> LoadedFleet:
    """The fleet in ``path``; the window of its day must still open after ``moment``, by default now.

    No cluster is read. Raises BadInput, and UsageError for a cluster to which the day cannot be deployed.
    """
    moment, registry = moment or current_time(), registry or load_registry()
    files = gameday.load_fleet(path, registry, moment)
    day = load_game_day(files.gameday, moment, registry)
    clusters = tuple(
        _load_cluster(each, files.document, files.inventories[each.name], day) for each in files.document.spec.clusters
    )
    return LoadedFleet(path, files.document, day, clusters)


def _load_cluster(cluster: FleetCluster, document: Fleet, path: Path, day: LoadedGameDay) -> LoadedCluster:
    inventory = load_inventory(path)
    options = _options(cluster, document.spec, document.metadata.name)
    deployment, secrets = deployment_of(day, path, options)
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
        cluster.report_url or "",
    )


def _reached_by(inventory: Inventory, cluster: FleetCluster, folder: Path) -> Inventory:
    """The inventory with the kubeconfig and context of the fleet, which are for this process only."""
    update: dict[str, str] = {}
    if cluster.kubeconfig:
        update["kubeconfig"] = absolute_paths(cluster.kubeconfig, folder.absolute())
    if cluster.context:
        update["context"] = cluster.context
    assert inventory.cluster is not None  # noqa: S101 - the loader has refused labs
    return inventory.model_copy(update={"cluster": inventory.cluster.model_copy(update=update)})


def cluster_permissions(cluster: LoadedCluster, lease: str = "") -> list[Permission]:
    """To apply what the Job needs, create, watch and delete it, and to halt the day; sorted.

    It includes the permissions of the day itself, as no one can grant others what they do not have. ``lease``: the name
    of the fleet's day in its home, "" elsewhere.
    """
    found = {*_objects(cluster), *_job(cluster), *_state(cluster, lease), *cluster.deployment.permissions}
    return sorted(each for each in found if not any(other != each and other.covers(each) for other in found))


def fleet_permissions(fleet: LoadedFleet) -> set[Permission]:
    """Those for all clusters together."""
    lease = fleet_day_name(fleet.document.metadata.name)
    found: set[Permission] = set()
    for cluster in fleet.clusters:
        found.update(cluster_permissions(cluster, lease if cluster.name == fleet.home.name else ""))
    return found


def _objects(cluster: LoadedCluster) -> Iterator[Permission]:
    for manifest in shared_manifests(cluster.deployment):
        path = collection_path(manifest, manifest["metadata"].get("namespace", ""))
        create = permission_for_request("POST", path)  # a server-side apply creates, too
        yield create
        yield permission_for_request("PATCH", object_path(path, manifest["metadata"]["name"]))
        if manifest["kind"] not in NOT_DELETED:
            yield replace(create, verb="list")
            yield replace(create, verb="delete")


def _job(cluster: LoadedCluster) -> Iterator[Permission]:
    for verb in ("list", "create", "delete"):
        yield Permission("batch", "jobs", verb, cluster.deployment.namespace)
    yield Permission("", "pods", "list", cluster.deployment.namespace)


def _state(cluster: LoadedCluster, lease: str) -> Iterator[Permission]:
    assert cluster.inventory.cluster is not None  # noqa: S101 - the loader has refused labs
    namespace = cluster.inventory.cluster.namespace
    for verb in ("list", "create", "update"):
        yield Permission("", "configmaps", verb, namespace)
    yield Permission("", "namespaces", "get", "", "kube-system")  # its UID identifies the cluster
    if lease:
        yield Permission(_LEASES, "leases", "create", namespace)
        for verb in ("get", "update", "delete"):
            yield Permission(_LEASES, "leases", verb, namespace, f"{GAME_DAY_PREFIX}{lease}")
