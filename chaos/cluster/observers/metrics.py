"""Metrics of kubelets and of kube-controller-manager, once a second, and each kubelet's configuration, once.

From the kubelet's port; through the API's node proxy only if the inventory allows it, as that amounts to exec on every
pod. From the replicas' own ports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from chaos.cluster.errors import DNS, OTHER, TLS, KubeUnreachable
from chaos.cluster.observers.base import ObserverGroup, ThreadedObserver
from chaos.cluster.observers.plugin import ObserverContext
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.api_fact import node_path
from chaos.core.errors import NodefallError, Refused
from chaos.core.indexes import LEADER_STATUS, METRIC_PREFIXES
from chaos.core.inventory import Inventory
from chaos.core.kube import Node
from chaos.core.ports import Clock, KubeApi, Response, Sink
from chaos.core.recording import EntryKind, RecordingEntry

PERIOD = 1.0  # seconds of cluster time
_MAX_LINE_LENGTH = 1000
_LOCAL_CAUSES = (TLS, DNS, OTHER)  # these are no finding about the target
ReadFunc = Callable[[], tuple[str, list[str]]]  # HTTP status and lines; raises KubeUnreachable
KUBELET_PREFIXES = ("kubelet_graceful_shutdown_", "kubelet_admission_rejections_total")
_CONFIGZ_FIELDS = (
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority",
    "nodeLeaseDurationSeconds",
    "nodeStatusUpdateFrequency",
    "nodeStatusReportFrequency",
    "evictionHard",
    "featureGates",
    "evictionPressureTransitionPeriod",
)
_PORT = 10250
SOURCE = "controller-manager"
GetFunc = Callable[[str], Response]  # from a URL; raises KubeUnreachable


class Scraper(ThreadedObserver):
    """One target in one thread, as a dead one is slow to answer. ``target`` is a node's name, or a URL."""

    def __init__(self, target: str, clock: Clock, read: ReadFunc) -> None:
        super().__init__(f"metrics of {target}", f"metrics@{target}", clock)
        self._target, self._read = target, read
        self._last_good = 0.0

    def start(self, sink: Sink) -> None:
        self._last_good = self._clock.now()
        super().start(sink)

    def _blind_since(self) -> float:
        return self._last_good

    def _run(self) -> None:
        while not self._thread.is_stopping:
            self._scrape()
            self._has_synced = True
            self._thread.pause(PERIOD)

    def _scrape(self) -> None:
        """One scrape. A failure on this side is a blind window, not a finding about the target."""
        began = self._clock.now()
        try:
            status, lines = self._read()
        except KubeUnreachable as error:
            if error.kind in _LOCAL_CAUSES:
                self._blind_windows.open(self.cause, self._last_good, error.message)
                return
            status, lines = "unreachable", []
        self._last_good = began
        self._blind_windows.close(self.cause)
        value = msgspec.Raw(msgspec.json.encode(lines))
        self._emit(RecordingEntry(self._clock.now(), EntryKind.METRICS, status, value, node=self._target))


def read_metrics(response: Response, prefixes: tuple[str, ...]) -> tuple[str, list[str]]:
    """The status of an answer, and the metrics in it."""
    return str(response.status), filter_metrics(response.body, prefixes) if response.status == 200 else []


def filter_metrics(body: bytes, prefixes: tuple[str, ...]) -> list[str]:
    """The lines ``name value`` that begin with one of ``prefixes``, sorted; over-long lines are left out."""
    lines = body.decode("utf-8", "replace").split("\n")
    return sorted(line.strip() for line in lines if line.startswith(prefixes) and len(line) <= _MAX_LINE_LENGTH)


def kubelet_metrics(
    api: KubeApi,
    clock: Clock,
    nodes: Sequence[str],
    lookup: Callable[[str], Node | None],
    allow_node_proxy: bool = False,
) -> ObserverGroup:
    """The observer of kubelets. ``lookup`` (name -> Node) is called before every scrape, as addresses change."""
    return ObserverGroup("metrics", [_Kubelet(api, clock, node, lookup, allow_node_proxy) for node in nodes])


class _Kubelet(Scraper):
    def __init__(
        self, api: KubeApi, clock: Clock, node: str, lookup: Callable[[str], Node | None], proxy: bool
    ) -> None:
        super().__init__(node, clock, self._read_all)
        self._api, self._node, self._lookup, self._allow_proxy = api, node, lookup, proxy
        self._has_configz = False

    def _read_all(self) -> tuple[str, list[str]]:
        if not self._has_configz:
            response = self._get("/configz")
            if response.status == 200:
                self._has_configz = True
                config = msgspec.Raw(msgspec.json.encode(parse_configz(response.body)))
                self._emit(RecordingEntry(self._clock.now(), EntryKind.HOST, "configz", config, node=self._node))
        return read_metrics(self._get("/metrics"), KUBELET_PREFIXES)

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
            return self._api.request("GET", f"{node_path(self._node)}/proxy{path}")
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


def controller_managers(urls: Sequence[str], get: GetFunc, clock: Clock) -> ObserverGroup:
    """The observer of the replicas at ``urls``."""
    return ObserverGroup("metrics", [Scraper(url, clock, partial(_read, url, get)) for url in urls])


def controller_manager_urls(inventory: Inventory) -> Sequence[str]:
    """The URLs of the replicas in the inventory. Raises Refused if the inventory has none."""
    if inventory.cluster is None or inventory.cluster.controller_manager is None:
        raise Refused(
            "no controllerManager in the inventory: the experiment uses its metrics",
            hint="add controllerManager: {urls: [...]} to cluster in the inventory (docs/recordings.md)",
        )
    return inventory.cluster.controller_manager.urls


def verify_reachable(urls: Sequence[str], get: GetFunc) -> None:
    """Raises NodefallError if a replica cannot be read, or none is the leader."""
    has_leader = False
    for url in urls:
        status, lines = _read(url, get)
        has_leader = has_leader or f"{LEADER_STATUS} 0" not in lines
        if status != "200":
            raise NodefallError(
                f"the controller-manager at {url} answers {status} to /metrics",
                hint="401: it does not accept the credentials; 403: grant them get on /metrics",
            )
    if not has_leader:
        raise NodefallError(
            f"no leader among the controller-managers at {', '.join(urls)}",
            hint="give the URL of each replica: only the counters of the leader move",
        )


def _read(url: str, get: GetFunc) -> tuple[str, list[str]]:
    return read_metrics(get(f"{url}/metrics"), METRIC_PREFIXES)


class MetricsPlugin:
    name = "metrics"

    def build(self, context: ObserverContext) -> list[ObserverGroup]:
        api, clock, cluster = context.api, context.clock, context.inventory.cluster
        allow_node_proxy = bool(cluster and cluster.allow_node_proxy)
        kubelets = kubelet_metrics(api, clock, context.nodes, context.cluster.nodes.node, allow_node_proxy)
        if SOURCE not in context.sources:
            return [kubelets]
        return [controller_managers(controller_manager_urls(context.inventory), api.component, clock), kubelets]


OBSERVER = MetricsPlugin()
