"""Metrics of kube-controller-manager's replicas, once a second, from their own ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from chaos.model.controller_manager import LEADER_STATUS, METRIC_PREFIXES
from chaos.model.errors import NodefallError
from chaos.model.ports import Clock, Response
from chaos.observers.scraper import MetricsObserver, Scraper, filter_metrics

GetFunc = Callable[[str], Response]  # from a URL; raises KubeUnreachable


def controller_managers(urls: Sequence[str], get: GetFunc, clock: Clock) -> MetricsObserver:
    """The eye on the replicas at ``urls``."""
    return MetricsObserver([Scraper(url, clock, partial(_read, url, get)) for url in urls])


def verify_reachable(urls: Sequence[str], get: GetFunc) -> None:
    """Raises NodefallError for a replica that cannot be read, and where none leads."""
    leads = False
    for url in urls:
        status, lines = _read(url, get)
        leads = leads or f"{LEADER_STATUS} 0" not in lines
        if status != "200":
            raise NodefallError(
                f"the controller-manager at {url} answers {status} to /metrics",
                hint="401: it does not know these credentials; 403: they may not get /metrics",
            )
    if not leads:
        raise NodefallError(
            f"no controller-manager leads of those at {', '.join(urls)}",
            hint="give the URL of each replica: only the counters of the one that leads move",
        )


def _read(url: str, get: GetFunc) -> tuple[str, list[str]]:
    response = get(f"{url}/metrics")
    return str(response.status), filter_metrics(response.body, METRIC_PREFIXES) if response.status == 200 else []
