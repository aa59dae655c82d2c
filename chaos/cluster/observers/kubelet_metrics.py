"""Metrics of the kubelets, once a second, and their effective configuration, once.

From the kubelet's port; through the API's node proxy only if the inventory allows it, as that amounts to exec on every
pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from chaos.cluster.errors import OTHER, KubeUnreachable
from chaos.cluster.observers.plugin import ObserverContext
from chaos.cluster.observers.scraper import MetricsObserver, Scraper, filter_metrics
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.kube import Node
from chaos.core.ports import Clock, KubeApi, Response
from chaos.core.recording import EntryKind, RecordingEntry

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
    """``lookup`` (name -> Node) is called before every scrape, as addresses change."""

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
            response = self._get("/configz")
            if response.status == 200:
                self._has_configz = True
                config = msgspec.Raw(msgspec.json.encode(parse_configz(response.body)))
                self.scraper.emit(RecordingEntry(self._clock.now(), EntryKind.HOST, "configz", config, node=self._node))
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
        except KubeUnreachable as error:  # the API server is unreachable, not the node
            raise KubeUnreachable(OTHER, error.message, hint=error.hint) from error

    def _get_direct(self, path: str) -> Response:
        node = self._lookup(self._node)
        where = kubelet_endpoint(node) if node else None
        if where is None:
            raise KubeUnreachable(OTHER, f"the address of {self._node} is unknown")
        return self._api.kubelet(*where, path)


def kubelet_endpoint(node: Node) -> tuple[str, int] | None:
    """Address and port of the kubelet: the InternalIP, otherwise the ExternalIP."""
    status = node.status
    if status is None:
        return None
    by_type = {a.type: a.address for a in reversed(status.addresses or ())}  # the first one of each type
    host = by_type.get("InternalIP") or by_type.get("ExternalIP")
    endpoint = status.daemon_endpoints.kubelet_endpoint if status.daemon_endpoints else None
    return (host, endpoint.port if endpoint and endpoint.port else _PORT) if host else None


def parse_configz(body: bytes) -> dict[str, Any]:
    """The relevant settings, None for each that is missing; {} if the body cannot be decoded."""
    try:
        document = msgspec.json.decode(body)
    except DECODE_ERRORS:
        return {}
    config = document.get("kubeletconfig") if isinstance(document, dict) else None
    return {key: config.get(key) for key in _CONFIGZ_FIELDS} if isinstance(config, dict) else {}


class KubeletMetricsPlugin:
    name = "kubelet-metrics"

    def build(self, context: ObserverContext) -> list[KubeletMetrics]:
        cluster = context.inventory.cluster
        allow_node_proxy = bool(cluster and cluster.allow_node_proxy)
        lookup = context.cluster.nodes.node
        return [KubeletMetrics(context.api, context.clock, context.nodes, lookup, allow_node_proxy)]


OBSERVER = KubeletMetricsPlugin()
