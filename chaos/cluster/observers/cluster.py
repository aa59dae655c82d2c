"""The observers of a cluster: the health of its API server, and a reflector for each resource.

Health is probed once a second. It says how the server is, not what a watch has missed. Events are never the only
evidence, as the API server may drop and merge them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from chaos.cluster.api import WatchApi
from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.observers.base import ObserverGroup, ThreadedObserver
from chaos.cluster.observers.currency_prover import CurrencyProver
from chaos.cluster.observers.reflector import Reflector
from chaos.core.kube import RESOURCES, Node
from chaos.core.labels import NODE_LEASE_NAMESPACE
from chaos.core.ports import Clock, Observer
from chaos.core.time_bounds import ClockOffset, ClockOffsetBounds

HEALTH_PERIOD = 1.0  # seconds of cluster time
PROBE_TIMEOUT = 2.0  # wall seconds
SLOW_THRESHOLD = 1.0  # seconds of cluster time
PLURALS = ("deployments", "statefulsets", "daemonsets", "replicasets")
# Watched in every run: the objects are few, and a recording may be judged by other experiments later.
_OPTIONAL_RESOURCES = ("jobs", "poddisruptionbudgets", "endpointslices", "persistentvolumeclaims", "volumeattachments")
RECORDED = ("nodes", "pods", "leases", "events", *PLURALS, *_OPTIONAL_RESOURCES)


class ApiHealth(ThreadedObserver):
    """Probes /readyz; a failure and a slow response count as unavailable. Also measures the server's clock."""

    def __init__(self, api: WatchApi, clock: Clock) -> None:
        super().__init__("api-health", "api-health", clock)
        self._api = api
        self._reason = ""
        self._bounds = ClockOffsetBounds()

    @property
    def reason(self) -> str:
        """Why the server is unavailable now, or ""."""
        return self._reason

    def offsets(self) -> dict[str, ClockOffset]:
        """The offset of the server's clock, once it is known."""
        offset = self._bounds.offset()
        return {"the API server": offset} if offset else {}

    def _run(self) -> None:
        while not self._thread.is_stopping:
            self._probe()
            self._has_synced = True
            self._thread.pause(HEALTH_PERIOD)

    def _probe(self) -> None:
        began = self._clock.now()
        try:
            date = self._api.probe(PROBE_TIMEOUT)
        except (KubeUnreachable, KubeRejected) as error:
            self._reason = error.message
            return
        now = self._clock.now()
        if date is not None:  # truncated to whole seconds
            self._bounds.add(date - now, date + 1 - began)
        took = now - began
        self._reason = f"the API server took {took:.1f} s to respond" if took > SLOW_THRESHOLD else ""

    def _on_crash(self, reason: str) -> None:
        self._reason = reason


class NodesObserver(Reflector):
    """Also the source of node addresses for other observers."""

    def __init__(self, api: WatchApi, clock: Clock) -> None:
        super().__init__(RESOURCES["nodes"], api, clock)

    def node(self, name: str) -> Node | None:
        """The last known state of a node; None if unknown or deleted."""
        known = self.last_known(name)
        return known.object if known and isinstance(known.object, Node) else None


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
        leases = RESOURCES["leases"]
        heartbeats = f"{leases.prefix}/namespaces/{NODE_LEASE_NAMESPACE}/{leases.plural}"
        owners = [Reflector(RESOURCES[plural], api, clock, optional=True) for plural in PLURALS]
        resources: list[Reflector] = [
            self.nodes,
            Reflector(RESOURCES["pods"], api, clock),
            Reflector(leases, api, clock, heartbeats, optional=True),
            *(Reflector(RESOURCES[plural], api, clock, optional=True) for plural in ("events", *_OPTIONAL_RESOURCES)),
        ]
        self.currency = CurrencyProver([*resources, *owners], relevant, clock, note)
        workloads = ObserverGroup("workloads", owners)
        self.watches: tuple[Observer, ...] = (self.health, *resources, workloads, self.currency)
