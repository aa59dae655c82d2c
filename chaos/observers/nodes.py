"""Nodes: conditions, taints, addresses and boot IDs."""

from __future__ import annotations

from chaos.kube.watch_stream import WatchApi
from chaos.model.kube import Node
from chaos.model.ports import Clock
from chaos.model.resources import RESOURCES
from chaos.observers.reflector import Reflector


class NodesObserver(Reflector):
    """Also the source of node addresses for other observers."""

    def __init__(self, api: WatchApi, clock: Clock) -> None:
        super().__init__(RESOURCES["nodes"], api, clock)

    def node(self, name: str) -> Node | None:
        """The last known state of a node; None if unknown or deleted."""
        known = self.last_known(name)
        return known.object if known and isinstance(known.object, Node) else None
