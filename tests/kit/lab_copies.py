"""Snapshots of clusters in process, and clusters from snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chaos.app.snapshot.take import take_snapshot
from chaos.cluster.snapshot.kinds import KINDS
from chaos.core.ports import Response
from chaos.lab.cluster import Cluster
from chaos.lab.http.resources import RESOURCES
from chaos.lab.snapshot.contents import lab_spec
from chaos.lab.snapshot.load import start_from_snapshot
from chaos.lab.snapshot.reader import read_snapshot
from chaos.lab.snapshot.unmodelled import Simplifier
from tests.kit.listed_cluster import Hosts, ListedCluster, connection, lines_of

Object = dict[str, Any]
# What a copy cannot have: former identities, times, and counts of writes.
NOT_SAVED = frozenset(
    {
        *(
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "lastTransitionTime",
            "startTime",
            "startedAt",
            "finishedAt",
        ),
        *("timeAdded", "generation", "observedGeneration", "deletionGracePeriodSeconds", "restartCount", "lastState"),
    }
)


def api_of(cluster: Cluster) -> ListedCluster:
    """The API of a cluster in process, with the kubelets that run."""
    kinds = {resource.plural: resource for resource in RESOURCES.values()}
    lists = {plural: [kinds[plural].show(obj) for obj in cluster.store.list(plural)] for plural in (*KINDS, "events")}
    api = ListedCluster(lists)
    for machine in cluster.machines.values():
        if machine.kubelet.is_running:
            api.configs[machine.address] = Response(200, json.dumps(machine.kubelet.configz()).encode(), {})
    return api


def save(cluster: Cluster, path: Path, *, anonymize: bool = False) -> Path:
    """A snapshot of a cluster in process."""
    specs = {name: machine.spec for name, machine in cluster.machines.items()}
    hosts = Hosts(
        {name: spec.systemd for name, spec in specs.items() if spec.os == "linux"},
        services={name: f"C:\\k\\{spec.kubelet_service}.exe" for name, spec in specs.items() if spec.os == "windows"},
    )
    connected = connection(api_of(cluster), hosts, cluster.spec.kubernetes)
    connected.clock.t = cluster.sim.now
    take_snapshot(connected, path, hosts_per_image=1000, anonymize=anonymize)
    return path


def copy_of(path: Path, **settings: Any) -> tuple[Cluster, Simplifier]:
    """A cluster from a snapshot, which has started, and what it does not model."""
    snapshot, simplifier = read_snapshot(path), Simplifier()
    start = float(snapshot.header["taken"])
    cluster = Cluster(lab_spec(snapshot, {"start": start, **settings}, simplifier))
    start_from_snapshot(cluster, snapshot, simplifier)
    return cluster, simplifier


def comparable(path: Path, kinds: Iterable[str] = (*KINDS, "configz", "host")) -> dict[str, Object]:
    """Lines of a snapshot by kind and name, without what is not saved."""
    found = {}
    for line in lines_of(path):
        if line["kind"] in kinds:
            metadata = line["object"].get("metadata") or {"name": line.get("node")}
            key = f"{line['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
            found[key] = _without(line["object"])
    return found


def differences(before: dict[str, Object], after: dict[str, Object]) -> list[str]:
    """Where two snapshots differ, for people."""
    found = [
        f"{key}: only in the {'first' if key in before else 'second'}" for key in sorted(before.keys() ^ after.keys())
    ]
    for key in sorted(before.keys() & after.keys()):
        found += _differences(key, before[key], after[key])
    return found


def _differences(path: str, before: Any, after: Any) -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for key in sorted(before.keys() | after.keys()):
            found += _differences(f"{path}.{key}", before.get(key), after.get(key))
        return found
    return [] if before == after else [f"{path}: {before!r} became {after!r}"]


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key: _without(item) for key, item in sorted(value.items()) if key not in NOT_SAVED}
        if "taints" in found:  # in any order
            found["taints"] = sorted(found["taints"], key=lambda taint: (taint["key"], taint["effect"]))
        return found
    if isinstance(value, list):
        return [_without(item) for item in value]
    return value
