"""Permissions that whoever runs a fleet needs in each of its clusters."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from chaos.app.fleet.loading import LoadedCluster, LoadedFleet
from chaos.cluster.workload import collection_path
from chaos.core.labels import GAME_DAY_PREFIX
from chaos.core.permission import Permission, permission_for_request
from chaos.gameday.deploy.manifests import NOT_DELETED, shared_manifests
from chaos.gameday.fleet_state import fleet_day_name

_LEASES = "coordination.k8s.io"


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
        yield permission_for_request("PATCH", f"{path}/{manifest['metadata']['name']}")
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
