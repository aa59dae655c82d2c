"""Kubelets' own metrics, once a second, and their effective configuration, once.

From the kubelet's port; through the API's node proxy only where that is allowed, as it amounts to exec on every pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from chaos.model.kube import Node
from chaos.model.ports import Clock, KubeApi, Response, Sink
from chaos.model.recording import Line
from chaos.observers.api import KubeUnreachable
from chaos.observers.sight import Sight
from chaos.observers.unreachable import DNS, OTHER, TLS
from chaos.observers.wire import UNDECODABLE
from chaos.observers.worker import Worker

PERIOD = 1.0  # seconds of cluster time
_KEPT = ("kubelet_graceful_shutdown_", "kubelet_admission_rejections_total")
_CONFIGZ = (
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority",
    "nodeLeaseDurationSeconds",
    "nodeStatusUpdateFrequency",
    "nodeStatusReportFrequency",
    "evictionHard",
    "evictionPressureTransitionPeriod",
)
_PORT = 10250
_LONGEST = 1000  # characters of a line
_OURS = (TLS, DNS, OTHER)  # causes that say nothing about the node
_SCRAPE = "scrape"


class KubeletMetrics:
    """Start it when ``lookup`` (name -> Node) knows the nodes; it is asked before every scrape, as addresses change."""

    name = "metrics"

    def __init__(
        self,
        api: KubeApi,
        clock: Clock,
        nodes: Sequence[str],
        lookup: Callable[[str], Node | None],
        allow_node_proxy: bool = False,
    ) -> None:
        self._scrapers = [_Scraper(api, clock, node, lookup, allow_node_proxy) for node in nodes]

    def start(self, sink: Sink) -> None:
        for scraper in self._scrapers:
            scraper.start(sink)

    def stop(self) -> None:
        for scraper in self._scrapers:
            scraper.worker.stop()

    def synced(self) -> bool:
        return all(scraper.synced for scraper in self._scrapers)


class _Scraper:
    """One node, in a thread of its own: a dead node answers late."""

    def __init__(
        self, api: KubeApi, clock: Clock, node: str, lookup: Callable[[str], Node | None], proxy: bool
    ) -> None:
        self._api, self._clock, self._node, self._lookup, self._proxy = api, clock, node, lookup, proxy
        self._sight = Sight(f"metrics@{node}", clock, self._emit)
        self._sink: Sink | None = None
        self._good = 0.0
        self._configured = False
        self.synced = False
        self.worker = Worker(f"metrics of {node}", clock, self._run, self._crashed)

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._good = self._clock.now()
        self.worker.start()

    def _emit(self, line: Line) -> None:
        if self._sink and not self.worker.stopping:
            self._sink(line)

    def _crashed(self, reason: str) -> None:
        self._sight.lost(_SCRAPE, self._good, reason)

    def _run(self) -> None:
        while not self.worker.stopping:
            self._look()
            self.synced = True
            self.worker.pause(PERIOD)

    def _look(self) -> None:
        """One scrape; a failure of our own side is a blind window, not a fact about the node."""
        began = self._clock.now()
        try:
            status, lines = self._scrape()
        except KubeUnreachable as error:
            if error.kind in _OURS:
                self._sight.lost(_SCRAPE, self._good, error.message)
                return
            status, lines = "unreachable", []
        self._good = began
        self._sight.regained(_SCRAPE)
        self._emit(Line(self._clock.now(), "metrics", status, _raw(lines), node=self._node))

    def _scrape(self) -> tuple[str, list[str]]:
        if not self._configured:
            answer = self._get("/configz")
            if answer.status == 200:
                self._configured = True
                self._emit(Line(self._clock.now(), "host", "configz", _raw(configz(answer.body)), node=self._node))
        response = self._get("/metrics")
        return str(response.status), kept(response.body) if response.status == 200 else []

    def _get(self, path: str) -> Response:
        try:
            response = self._direct(path)
        except KubeUnreachable:
            if not self._proxy:
                raise
        else:
            if response.status not in (401, 403) or not self._proxy:
                return response
        try:
            return self._api.request("GET", f"/api/v1/nodes/{self._node}/proxy{path}")
        except KubeUnreachable as error:  # of the API server, not of the node
            raise KubeUnreachable(OTHER, error.message, hint=error.hint) from error

    def _direct(self, path: str) -> Response:
        node = self._lookup(self._node)
        where = address(node) if node else None
        if where is None:
            raise KubeUnreachable(OTHER, f"{self._node} has no known address")
        return self._api.kubelet(*where, path)


def address(node: Node) -> tuple[str, int] | None:
    """Where the kubelet listens: its InternalIP (else any IP) and port."""
    status = node.status
    if status is None:
        return None
    by_type = {a.type: a.address for a in reversed(status.addresses or ())}  # the first of a type counts
    host = by_type.get("InternalIP") or by_type.get("ExternalIP")
    endpoint = status.daemon_endpoints.kubelet_endpoint if status.daemon_endpoints else None
    return (host, endpoint.port if endpoint and endpoint.port else _PORT) if host else None


def kept(body: bytes) -> list[str]:
    """The lines ``name value`` that are looked at, sorted; longer ones are none of these."""
    lines = body.decode("utf-8", "replace").split("\n")
    return sorted(line.strip() for line in lines if line.startswith(_KEPT) and len(line) <= _LONGEST)


def configz(body: bytes) -> dict[str, Any]:
    """The settings that are looked at, None where the kubelet does not tell one. {} if it is not understood."""
    try:
        document = msgspec.json.decode(body)
    except UNDECODABLE:
        return {}
    config = document.get("kubeletconfig") if isinstance(document, dict) else None
    return {key: config.get(key) for key in _CONFIGZ} if isinstance(config, dict) else {}


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
