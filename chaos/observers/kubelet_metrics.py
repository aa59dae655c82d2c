"""Kubelets' own metrics, once a second, and their effective configuration, once.

From the kubelet's port; through the API's node proxy only where that is allowed, as it amounts to exec on every pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from chaos.kube.errors import OTHER, KubeUnreachable
from chaos.kube.watch_codec import DECODE_ERRORS
from chaos.model.kube import Node
from chaos.model.ports import Clock, KubeApi, Response
from chaos.model.recording import RecordingEntry
from chaos.observers.scraper import MetricsObserver, Scraper, filter_metrics

METRIC_PREFIXES = ("kubelet_graceful_shutdown_", "kubelet_admission_rejections_total")
_CONFIGZ_FIELDS = (
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


class KubeletMetrics(MetricsObserver):
    """Start it when ``lookup`` (name -> Node) knows the nodes; it is asked before every scrape, as addresses change."""

    def __init__(
        self,
        api: KubeApi,
        clock: Clock,
        nodes: Sequence[str],
        lookup: Callable[[str], Node | None],
        allow_node_proxy: bool = False,
    ) -> None:
        super().__init__([_Kubelet(api, clock, node, lookup, allow_node_proxy).scraper for node in nodes])


class _Kubelet:
    def __init__(
        self, api: KubeApi, clock: Clock, node: str, lookup: Callable[[str], Node | None], proxy: bool
    ) -> None:
        self._api, self._clock, self._node, self._lookup, self._allow_proxy = api, clock, node, lookup, proxy
        self._has_configz = False
        self.scraper = Scraper(node, clock, self._scrape)

    def _scrape(self) -> tuple[str, list[str]]:
        if not self._has_configz:
            answer = self._get("/configz")
            if answer.status == 200:
                self._has_configz = True
                config = msgspec.Raw(msgspec.json.encode(parse_configz(answer.body)))
                self.scraper.emit(RecordingEntry(self._clock.now(), "host", "configz", config, node=self._node))
        response = self._get("/metrics")
        return str(response.status), filter_metrics(response.body, METRIC_PREFIXES) if response.status == 200 else []

    def _get(self, path: str) -> Response:
        try:
            response = self._get_direct(path)
        except KubeUnreachable:
            if not self._allow_proxy:
                raise
        else:
            if response.status not in (401, 403) or not self._allow_proxy:
                return response
        try:
            return self._api.request("GET", f"/api/v1/nodes/{self._node}/proxy{path}")
        except KubeUnreachable as error:  # of the API server, not of the node
            raise KubeUnreachable(OTHER, error.message, hint=error.hint) from error

    def _get_direct(self, path: str) -> Response:
        node = self._lookup(self._node)
        where = kubelet_endpoint(node) if node else None
        if where is None:
            raise KubeUnreachable(OTHER, f"{self._node} has no known address")
        return self._api.kubelet(*where, path)


def kubelet_endpoint(node: Node) -> tuple[str, int] | None:
    """Where the kubelet listens: its InternalIP (else any IP) and port."""
    status = node.status
    if status is None:
        return None
    by_type = {a.type: a.address for a in reversed(status.addresses or ())}  # the first of a type counts
    host = by_type.get("InternalIP") or by_type.get("ExternalIP")
    endpoint = status.daemon_endpoints.kubelet_endpoint if status.daemon_endpoints else None
    return (host, endpoint.port if endpoint and endpoint.port else _PORT) if host else None


def parse_configz(body: bytes) -> dict[str, Any]:
    """The settings that are looked at, None where the kubelet does not tell one. {} if it is not understood."""
    try:
        document = msgspec.json.decode(body)
    except DECODE_ERRORS:
        return {}
    config = document.get("kubeletconfig") if isinstance(document, dict) else None
    return {key: config.get(key) for key in _CONFIGZ_FIELDS} if isinstance(config, dict) else {}
