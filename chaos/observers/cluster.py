"""All eyes on a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.kube.watch_stream import WatchApi
from chaos.model.ports import Clock, Observer
from chaos.model.resources import RESOURCES
from chaos.observers.events import EventsObserver
from chaos.observers.health import ApiHealth
from chaos.observers.kubelet_metrics import KubeletMetrics
from chaos.observers.leases import LeasesObserver
from chaos.observers.nodes import NodesObserver
from chaos.observers.pods import PodsObserver
from chaos.observers.reflector import Reflector
from chaos.observers.workloads import WorkloadsObserver

# All are watched in every run: they are few objects, and a recording answers questions that nobody asked before.
_OPTIONAL_RESOURCES = ("jobs", "poddisruptionbudgets", "endpointslices", "persistentvolumeclaims", "volumeattachments")


class ClusterObservers:
    """``watches`` are started first; ``kubelets(...)`` when they are synced, as it asks them for addresses."""

    def __init__(self, api: WatchApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self.health = ApiHealth(api, clock)
        self.nodes = NodesObserver(api, clock, self.health)
        self.watches: tuple[Observer, ...] = (
            self.health,
            self.nodes,
            PodsObserver(api, clock, self.health),
            LeasesObserver(api, clock, self.health),
            EventsObserver(api, clock, self.health),
            WorkloadsObserver(api, clock, self.health),
            *(Reflector(RESOURCES[plural], api, clock, self.health, optional=True) for plural in _OPTIONAL_RESOURCES),
        )

    def kubelets(self, nodes: Sequence[str], allow_node_proxy: bool = False) -> KubeletMetrics:
        """The eye on the kubelets of ``nodes``."""
        return KubeletMetrics(self._api, self._clock, nodes, self.nodes.node, allow_node_proxy)
