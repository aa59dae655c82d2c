"""The observers of a cluster: the health of its API server, and a reflector for each resource."""

from __future__ import annotations

from collections.abc import Callable, Collection

from chaos.kube.watch_stream import WatchApi
from chaos.model.ports import Clock, Observer
from chaos.model.resources import RESOURCES
from chaos.observers.currency_prover import CurrencyProver
from chaos.observers.events import EventsObserver
from chaos.observers.health import ApiHealth
from chaos.observers.leases import LeasesObserver
from chaos.observers.nodes import NodesObserver
from chaos.observers.pods import PodsObserver
from chaos.observers.reflector import Reflector
from chaos.observers.workloads import PLURALS, WorkloadsObserver

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
