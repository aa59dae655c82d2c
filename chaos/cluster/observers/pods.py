"""Pods of all namespaces."""

from __future__ import annotations

from chaos.cluster.observers.reflector import Reflector
from chaos.cluster.watch_stream import WatchApi
from chaos.core.ports import Clock
from chaos.core.resources import RESOURCES


class PodsObserver(Reflector):
    def __init__(self, api: WatchApi, clock: Clock) -> None:
        super().__init__(RESOURCES["pods"], api, clock)
