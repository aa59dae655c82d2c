"""The observers of a cluster: the health of its API server, and a reflector for each resource."""

from __future__ import annotations

from chaos.kube.watch_stream import WatchApi
from chaos.model.ports import Clock, Observer
from chaos.model.resources import RESOURCES
from chaos.observers.events import EventsObserver
from chaos.observers.health import ApiHealth
from chaos.observers.leases import LeasesObserver
from chaos.observers.nodes import NodesObserver
from chaos.observers.pods import PodsObserver
from chaos.observers.reflector import Reflector
from chaos.observers.workloads import WorkloadsObserver

# Watched in every run: the objects are few, and a recording may be judged by other experiments later.
_OPTIONAL_RESOURCES = ("jobs", "poddisruptionbudgets", "endpointslices", "persistentvolumeclaims", "volumeattachments")


class ClusterObservers:
    """``watches`` start first; other observers look up the addresses of ``nodes`` once they have synced."""

    def __init__(self, api: WatchApi, clock: Clock) -> None:
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
