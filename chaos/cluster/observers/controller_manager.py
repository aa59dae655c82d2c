"""Metrics of the replicas of kube-controller-manager, once a second, from their own ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from chaos.cluster.observers.plugin import ObserverContext
from chaos.cluster.observers.scraper import MetricsObserver, Scraper, filter_metrics
from chaos.core.controller_manager import LEADER_STATUS, METRIC_PREFIXES
from chaos.core.errors import NodefallError, Refused
from chaos.core.inventory import Inventory
from chaos.core.ports import Clock, Response

SOURCE = "controller-manager"
GetFunc = Callable[[str], Response]  # from a URL; raises KubeUnreachable


def controller_managers(urls: Sequence[str], get: GetFunc, clock: Clock) -> MetricsObserver:
    """The observer of the replicas at ``urls``."""
    return MetricsObserver([Scraper(url, clock, partial(_read, url, get)) for url in urls])


def controller_manager_urls(inventory: Inventory) -> Sequence[str]:
    """URLs of the replicas in the inventory. Raises Refused if there are none."""
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
    response = get(f"{url}/metrics")
    return str(response.status), filter_metrics(response.body, METRIC_PREFIXES) if response.status == 200 else []


class ControllerManagerPlugin:
    name = SOURCE

    def build(self, context: ObserverContext) -> list[MetricsObserver]:
        if SOURCE not in context.sources:
            return []
        return [controller_managers(controller_manager_urls(context.inventory), context.api.component, context.clock)]


OBSERVER = ControllerManagerPlugin()
