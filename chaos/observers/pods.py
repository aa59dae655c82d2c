"""Pods of all namespaces."""

from __future__ import annotations

from chaos.kube.watch_stream import WatchApi
from chaos.model.ports import Clock
from chaos.model.resources import RESOURCES
from chaos.observers.reflector import Reflector


class PodsObserver(Reflector):
    def __init__(self, api: WatchApi, clock: Clock) -> None:
        super().__init__(RESOURCES["pods"], api, clock)
