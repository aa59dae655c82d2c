"""Nodes: conditions, taints, addresses and boot IDs."""

from __future__ import annotations

from chaos.cluster.observers.reflector import Reflector
from chaos.cluster.watch_stream import WatchApi
from chaos.core.kube import Node
from chaos.core.ports import Clock
from chaos.core.resources import RESOURCES


class NodesObserver(Reflector):
    """Also the source of node addresses for other observers."""

    def __init__(self, api: WatchApi, clock: Clock) -> None:
        super().__init__(RESOURCES["nodes"], api, clock)

    def node(self, name: str) -> Node | None:
        """The last known state of a node; None if unknown or deleted."""
        known = self.last_known(name)
        return known.object if known and isinstance(known.object, Node) else None
