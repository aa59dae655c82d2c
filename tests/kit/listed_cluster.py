"""A cluster for snapshots: lists by plural, errors in their place, kubelets and hosts that answer or do not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from chaos.cluster.errors import REFUSED, KubeUnreachable
from chaos.cluster.snapshot.kinds import KINDS
from chaos.core.errors import NodefallError, Unreachable
from chaos.core.ports import Response
from tests.kit.fakes import FakeClock, FakeKube

Object = dict[str, Any]
PAGE = 2
CONFIG = {"kubeletconfig": {"shutdownGracePeriod": "30s", "clusterDNS": ["10.96.0.10"]}}


def node(name: str, address: str = "10.0.0.1", **more: Any) -> Object:
    info = {
        "osImage": "Debian 12",
        "kernelVersion": "6.1.0-acme",
        "operatingSystem": "linux",
        "kubeletVersion": "v1.36.2",
    }
    status = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": info,
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"},
    }
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": status,
        **more,
    }


class ListedCluster(FakeKube):
    """``lists``: objects by plural; ``refused``: status by path; ``unreachable``: paths without a response."""

    def __init__(self, lists: Mapping[str, list[Any]] | None = None, groups: tuple[str, ...] = ("apps",)) -> None:
        super().__init__({})
        self.lists = {kind.path: list((lists or {}).get(kind.plural, [])) for kind in KINDS.values()}
        self.lists["/api/v1/events"] = list((lists or {}).get("events", []))
        self.groups = groups
        self.refused: dict[str, int] = {}
        self.unreachable: set[str] = set()
        self.queries: list[tuple[str, Mapping[str, str]]] = []
        self.expired: set[str] = set()  # paths whose continue token expires once
        self.configs: dict[str, Response] = {}

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        assert method == "GET", "a snapshot changes nothing"
        self.queries.append((path, query or {}))
        if path in self.unreachable:
            raise KubeUnreachable(REFUSED, f"https://10.9.8.7:6443{path}: connection refused")
        if path in self.refused:
            message = json.dumps({"message": f"User planted-user cannot list {path}"}).encode()
            return Response(self.refused[path], message, {})
        if path == "/apis":
            return Response(200, json.dumps({"groups": [{"name": name} for name in self.groups]}).encode(), {})
        if path in self.lists:
            return self._page(path, query or {})
        return Response(404, b'{"message": "not found"}', {})

    def _page(self, path: str, query: Mapping[str, str]) -> Response:
        token = query.get("continue", "")
        if token and path in self.expired:
            self.expired.remove(path)
            return Response(410, b'{"message": "expired"}', {})
        begin, size = int(token or 0), PAGE if "limit" in query else 10**6
        items = self.lists[path][begin : begin + size]
        more = {"continue": str(begin + size)} if begin + size < len(self.lists[path]) else {}
        return Response(200, json.dumps({"metadata": {"resourceVersion": "7", **more}, "items": items}).encode(), {})

    def kubelet(self, address: str, port: int, path: str) -> Response:
        if address not in self.configs:
            raise KubeUnreachable(REFUSED, f"https://{address}:{port}: connection refused")
        return self.configs[address]

    def set_kubelet_certificate_source(self, certificate: Callable[[str], str]) -> None:
        self.certificate = certificate


class Hosts:
    """``systemd``, and ``services`` on Windows: by node; others are not reachable.

    ``broken``: nodes whose facts cannot be read.
    """

    def __init__(
        self, systemd: Mapping[str, int], broken: tuple[str, ...] = (), services: Mapping[str, str] | None = None
    ) -> None:
        self.facts = {"systemd-version": systemd, "kubelet-binary": services or {}}
        self.broken = broken
        self.contacted: list[str] = []

    def session(self, name: str) -> None:
        self.contacted.append(name)
        if not any(name in found for found in self.facts.values()):
            raise Unreachable(f"{name} at 10.0.0.9: no route to it")

    def read(self, name: str, fact: str) -> Any:
        if name in self.broken:
            raise NodefallError(f"{fact} of {name}: it answers with planted nonsense")
        return self.facts[fact][name] if fact in self.facts else f"certificate of {name}"


def connection(kube: ListedCluster, hosts: Hosts | None = None, version: str = "v1.36.2") -> Any:
    """As connect_cluster yields it, as far as a snapshot uses it."""
    cluster = SimpleNamespace(allow_node_proxy=False, simulated=False)
    inventory = SimpleNamespace(cluster=cluster)
    return SimpleNamespace(kube=kube, hosts=hosts or Hosts({}), clock=FakeClock(), inventory=inventory, version=version)


def lines_of(path: Path) -> list[Object]:
    """The lines of a snapshot."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
