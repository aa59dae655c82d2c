"""Configuration of kubelets, and facts of hosts, into a snapshot; what cannot be read is noted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from chaos.app.snapshot.notes import Notes
from chaos.cluster.snapshot.component_fields import FACTS, KUBELET
from chaos.cluster.snapshot.projection import Convert, Leaf, Projector
from chaos.core.errors import NodefallError
from chaos.core.files import SnapshotFile
from chaos.core.kube import Node, operating_system
from chaos.engine.connection import ClusterConnection
from chaos.engine.inspection import fetch_configz
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
            self._notes.add(f"host facts of {skipped} nodes", "not contacted (--hosts)")

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
