"""Pods of all namespaces."""

from __future__ import annotations

from chaos.model.ports import Clock
from chaos.model.resources import RESOURCES
from chaos.observers.api import WatchApi
from chaos.observers.health import ApiHealth
from chaos.observers.listwatch import Reflector


class PodsObserver(Reflector):
    def __init__(self, api: WatchApi, clock: Clock, health: ApiHealth | None = None) -> None:
        super().__init__(RESOURCES["pods"], api, clock, health)
