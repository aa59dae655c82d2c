"""Deployments, StatefulSets, DaemonSets and ReplicaSets of all namespaces."""

from __future__ import annotations

from chaos.cluster.observers.reflector import Reflector
from chaos.cluster.watch_stream import WatchApi
from chaos.core.ports import Clock, Sink
from chaos.core.resources import RESOURCES

PLURALS = ("deployments", "statefulsets", "daemonsets", "replicasets")


class WorkloadsObserver:
    name = "workloads"

    def __init__(self, api: WatchApi, clock: Clock) -> None:
        self.watches = [Reflector(RESOURCES[plural], api, clock, optional=True) for plural in PLURALS]

    def start(self, sink: Sink) -> None:
        for watch in self.watches:
            watch.start(sink)

    def stop(self) -> None:
        for watch in self.watches:
            watch.stop()

    def has_synced(self) -> bool:
        return all(watch.has_synced() for watch in self.watches)
