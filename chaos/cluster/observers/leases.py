"""Leases of the kubelets: their heartbeat."""

from __future__ import annotations

from chaos.cluster.observers.reflector import Reflector
from chaos.cluster.watch_stream import WatchApi
from chaos.core.labels import NODE_LEASE_NAMESPACE
from chaos.core.ports import Clock
from chaos.core.resources import RESOURCES


class LeasesObserver(Reflector):
    def __init__(self, api: WatchApi, clock: Clock) -> None:
        resource = RESOURCES["leases"]
        super().__init__(
            resource,
            api,
            clock,
            path=f"{resource.prefix}/namespaces/{NODE_LEASE_NAMESPACE}/{resource.plural}",
            optional=True,
        )
