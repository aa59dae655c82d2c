"""The observers of a cluster: the health of its API server, and a reflector for each resource."""

from __future__ import annotations

from collections.abc import Callable, Collection

from chaos.cluster.observers.currency_prover import CurrencyProver
from chaos.cluster.observers.events import EventsObserver
from chaos.cluster.observers.health import ApiHealth
from chaos.cluster.observers.leases import LeasesObserver
from chaos.cluster.observers.nodes import NodesObserver
from chaos.cluster.observers.pods import PodsObserver
from chaos.cluster.observers.reflector import Reflector
from chaos.cluster.observers.workloads import PLURALS, WorkloadsObserver
from chaos.cluster.watch_stream import WatchApi
from chaos.core.ports import Clock, Observer
from chaos.core.resources import RESOURCES

# Watched in every run: the objects are few, and a recording may be judged by other experiments later.
_OPTIONAL_RESOURCES = ("jobs", "poddisruptionbudgets", "endpointslices", "persistentvolumeclaims", "volumeattachments")
RECORDED = ("nodes", "pods", "leases", "events", *PLURALS, *_OPTIONAL_RESOURCES)


class ClusterObservers:
    """``watches`` start first; other observers look up the addresses of ``nodes`` once they have synced.

    ``relevant``: the resources that the experiment asks about. ``note`` describes a wait to people.
    """

    def __init__(
        self,
        api: WatchApi,
        clock: Clock,
        relevant: Collection[str] = (),
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.health = ApiHealth(api, clock)
        self.nodes = NodesObserver(api, clock)
        workloads = WorkloadsObserver(api, clock)
        resources: list[Reflector] = [
            self.nodes,
            PodsObserver(api, clock),
            LeasesObserver(api, clock),
            EventsObserver(api, clock),
            *(Reflector(RESOURCES[plural], api, clock, optional=True) for plural in _OPTIONAL_RESOURCES),
        ]
        self.currency = CurrencyProver([*resources, *workloads.watches], relevant, clock, note)
        self.watches: tuple[Observer, ...] = (self.health, *resources, workloads, self.currency)
