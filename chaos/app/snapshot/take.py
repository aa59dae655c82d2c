"""Takes a snapshot: lists, kubelets, hosts, measured times, header. What cannot be read is noted."""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from chaos import __version__
from chaos.app.snapshot.objects import Notes, ObjectCollector
from chaos.cluster.snapshot.anonymize import Anonymizer
from chaos.cluster.snapshot.document import FORMAT, Header
from chaos.cluster.snapshot.fields import FACTS, KUBELET
from chaos.cluster.snapshot.kinds import EVENTS, KINDS, UNMODELLED
from chaos.cluster.snapshot.measure import Measurements
from chaos.cluster.snapshot.projection import KEEP, NAME, Convert, Leaf, Projector, Tree, plain_conversions
from chaos.core.errors import NodefallError
from chaos.core.files import SnapshotFile
from chaos.core.kube import Node, operating_system
from chaos.core.permission import Permission, permission_for_request
from chaos.core.text import count_of
from chaos.engine.connection import ClusterConnection
from chaos.engine.inspection import fetch_configz
from chaos.lab.facade import nearest_version
from chaos.machines.concurrency import run_concurrently

CONFIGZ, HOST = "configz", "host"


class MachineCollector:
    """Reads the machines of ``nodes``; of each OS image and kernel, ``hosts_per_image`` hosts are contacted."""

    def __init__(
        self, connection: ClusterConnection, nodes: list[Node], file: SnapshotFile, notes: Notes, hosts_per_image: int
    ) -> None:
        self._connection, self._nodes, self._file, self._notes = connection, nodes, file, notes
        self._contacted = _first_of_each_image(nodes, hosts_per_image)

    def collect(self, convert: Mapping[Leaf, Convert]) -> None:
        """Read the kubelets of all nodes, and the hosts of some."""
        self._connection.kube.set_kubelet_certificate_source(self._certificate)
        cluster = self._connection.inventory.cluster
        proxy = bool(cluster and cluster.allow_node_proxy)

        def configz(node: Node) -> dict[str, Any] | NodefallError:
            try:
                return fetch_configz(node, self._connection.kube, proxy)
            except NodefallError as error:
                return error

        results = run_concurrently(self._nodes, configz, self._connection.clock)
        projector = Projector(CONFIGZ, KUBELET, convert)
        name = convert[Leaf.NAME]
        failed = []
        for node, config in zip(self._nodes, results, strict=True):
            if isinstance(config, NodefallError):
                failed.append((node.metadata.name, config))
            else:
                self._add(CONFIGZ, name(node.metadata.name), projector.project(config))
        self._notes.add_errors("kubelet configuration", failed, "its graceful shutdown is not known")
        self._collect_hosts(convert)

    def _collect_hosts(self, convert: Mapping[Leaf, Convert]) -> None:
        nodes = [node for node in self._nodes if node.metadata.name in self._contacted]
        results = run_concurrently(nodes, self._facts, self._connection.clock) if nodes else []
        failed = []
        for node, found in zip(nodes, results, strict=True):
            if isinstance(found, NodefallError):
                failed.append((node.metadata.name, found))
            else:
                self._add(HOST, convert[Leaf.NAME](node.metadata.name), found)
        self._notes.add_errors("host facts", failed, "its systemd or service is not known")
        if skipped := len(self._nodes) - len(nodes):
            self._notes.add(f"host facts of {count_of(skipped, 'node')}", "not contacted (--hosts)")

    def _facts(self, node: Node) -> dict[str, Any] | NodefallError:
        """Facts of a host; those that it has not are left out."""
        name, hosts, found = node.metadata.name, self._connection.hosts, {}
        try:
            hosts.session(name)
        except NodefallError as error:
            return error
        key, fact, stored = FACTS[operating_system(node)]
        try:
            found[key] = stored(hosts.read(name, fact))
        except NodefallError as error:
            self._notes.add_errors(f"fact {fact}", [(name, error)], "the lab's default is assumed")
        return found

    def _certificate(self, address: str) -> str:
        """Certificate of the kubelet at an address, read on its host if that is contacted. Raises NodefallError."""
        for node in self._nodes:
            known = (node.status and node.status.addresses) or ()
            if node.metadata.name in self._contacted and any(item.address == address for item in known):
                return str(self._connection.hosts.read(node.metadata.name, "kubelet-certificate"))
        raise NodefallError("its host is not contacted (--hosts)")

    def _add(self, kind: str, node: str, found: dict[str, Any]) -> None:
        self._file.add(kind, msgspec.json.encode({"kind": kind, "node": node, "object": found}))


def _first_of_each_image(nodes: list[Node], number: int) -> frozenset[str]:
    """Names of the first ``number`` nodes of each OS image and kernel: the others have the same systemd or service."""
    by_image: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node in nodes:
        info = node.status.node_info if node.status else None
        if info is not None and operating_system(node) in FACTS:
            by_image[info.os_image, info.kernel_version].append(node.metadata.name)
    return frozenset(name for names in by_image.values() for name in sorted(names)[:number])


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
