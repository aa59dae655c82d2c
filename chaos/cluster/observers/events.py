"""Events of all namespaces: never the only evidence, as the API server may drop and merge them."""

from __future__ import annotations

from chaos.cluster.observers.reflector import Reflector
from chaos.cluster.watch_stream import WatchApi
from chaos.core.ports import Clock
from chaos.core.resources import RESOURCES


class EventsObserver(Reflector):
    def __init__(self, api: WatchApi, clock: Clock) -> None:
        super().__init__(RESOURCES["events"], api, clock, optional=True)
