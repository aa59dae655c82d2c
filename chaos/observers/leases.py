"""Leases of the kubelets: their heartbeat."""

from __future__ import annotations

from chaos.kube.watch_stream import WatchApi
from chaos.model.labels import NODE_LEASE_NAMESPACE
from chaos.model.ports import Clock
from chaos.model.resources import RESOURCES
from chaos.observers.reflector import Reflector


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
