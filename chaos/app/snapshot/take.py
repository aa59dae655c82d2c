"""Takes a snapshot: lists, kubelets, hosts, measured times, header."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from chaos import __version__
from chaos.app.snapshot.machines import MachineCollector
from chaos.app.snapshot.notes import Notes
from chaos.app.snapshot.objects import ObjectCollector
from chaos.cluster.snapshot.anonymize import Anonymizer
from chaos.cluster.snapshot.document import FORMAT, Header
from chaos.cluster.snapshot.kinds import EVENTS, KINDS, UNMODELLED
from chaos.cluster.snapshot.measure import Measurements
from chaos.cluster.snapshot.projection import KEEP, NAME, Convert, Leaf, Projector, Tree, plain_conversions
from chaos.core.files import SnapshotFile
from chaos.core.permission import Permission, permission_for_request
from chaos.engine.connection import ClusterConnection
from chaos.lab.facade import nearest_version

HOSTS_PER_IMAGE = 3
_KEY_BYTES = 32
_VERSION = re.compile(r"v1\.[0-9]+(?![0-9])")
_MEASURED = "measured"
_MEASURED_TREE: Tree = {
    "kind": Leaf.KIND,
    "namespace": NAME,
    "name": NAME,
    **dict.fromkeys(
        ("start", "end", "pull"), dict.fromkeys(("number", "p5", "p50", "p95", "killed", "exitCode"), KEEP)
    ),
}


def take_snapshot(
    connection: ClusterConnection,
    out: Path,
    *,
    anonymize: bool = False,
    hosts_per_image: int = HOSTS_PER_IMAGE,
    progress: Callable[[str], None] = lambda _: None,
) -> Header:
    """Read a cluster and write ``out``; the header says what is missing. Changes nothing in the cluster.

    ``anonymize``: names, values of labels and the like are replaced, consistently, with a key that is not written.
    ``hosts_per_image``: how many hosts of each OS image and kernel are contacted. ``progress`` gets lines for people.

    Raises UsageError if the file cannot be written, and NodefallError if no list could be read.
    """
    hidden = Anonymizer(secrets.token_bytes(_KEY_BYTES)) if anonymize else None
    convert = hidden.conversions() if hidden else plain_conversions()
    file, notes = SnapshotFile(), Notes(hidden.text if hidden else None)
    taken = connection.clock.now()
    _note_version(connection.version, notes)
    objects = ObjectCollector(connection.kube, file, notes, convert)
    objects.collect(progress)
    progress(f"kubelets of {len(objects.nodes)} nodes")
    MachineCollector(connection, objects.nodes, file, notes, hosts_per_image).collect(convert)
    _add_measured(objects.measured, file, convert)
    cluster = connection.inventory.cluster
    header = Header(
        format=FORMAT,
        nodefall=__version__,
        taken=taken,
        kubernetes=convert[Leaf.SYSTEM](connection.version),
        anonymized=anonymize,
        simulated=bool(cluster and cluster.simulated),
        counts=file.counts,
        controller_manager=objects.flags.get("kube-controller-manager", {}),
        api_server=objects.flags.get("kube-apiserver", {}),
        missing=notes.missing,
    )
    file.write(out, msgspec.json.encode({"kind": "header", "object": header}))
    return header


def _add_measured(measured: Measurements, file: SnapshotFile, convert: Mapping[Leaf, Convert]) -> None:
    projector = Projector(_MEASURED, _MEASURED_TREE, convert)
    for row in measured.lines():
        image = {"name": convert[Leaf.IMAGE](row["name"])} if row["kind"] == "Image" else {}
        line = {"kind": _MEASURED, "object": {**projector.project(row), **image}}
        file.add(_MEASURED, msgspec.json.encode(line))


def _note_version(version: str, notes: Notes) -> None:
    found, simulated = _VERSION.match(version), nearest_version(version)
    if found is None or not simulated.startswith(found[0]):
        shown = found[0] if found else "of unknown form"
        notes.add(f"Kubernetes {shown}", f"the lab behaves as {simulated}")


def snapshot_permissions(allow_node_proxy: bool) -> list[Permission]:
    """To list all kinds, and to read the configuration of kubelets. ``allow_node_proxy``: as of the inventory."""
    paths = [EVENTS, *(kind.path for kind in KINDS.values()), *UNMODELLED]
    lists = [replace(permission_for_request("GET", path), verb="list") for path in paths]
    nodes = ["nodes", "nodes/configz", *(["nodes/proxy"] if allow_node_proxy else [])]  # nodes: addresses of hosts
    reads = [Permission("", name, "get") for name in nodes]
    return sorted([*lists, *reads, Permission("", "namespaces", "get", "", "kube-system")])
