"""Runs of the engine whose ports are stand-ins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chaos.cluster.replica import Signer
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan
from chaos.core.ports import Clock, Progress, Sink
from chaos.core.registry import PluginRegistry
from chaos.core.result import RunResult
from chaos.core.store.journal import Journal
from chaos.core.timeline import Timeline
from chaos.core.verdict import Verdict
from chaos.engine.connection import ClusterConnection
from chaos.engine.load import LoadedExperiment
from chaos.engine.observers import RunObservers
from chaos.engine.session import EntryRecorder, RunSession
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeGuard

LAB = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "lab"}, "lab": {}}


class FakeRecorder:
    """Hands on what is emitted."""

    def __init__(self, sink: Sink = lambda _: None) -> None:
        self.emit = sink

    def timeline(self) -> Timeline:
        return Timeline()


class FakeJudge:
    """Says what it is given."""

    def __init__(
        self, judge: Callable[[bool], RunResult], steady_state: Callable[[], Sequence[Verdict]] = tuple
    ) -> None:
        self.judge, self.steady_state = judge, steady_state

    def late_watches(self, since: float) -> Sequence[Verdict]:
        return ()


class FakeMirror:
    """A cluster that takes every journal; implements ``InventoryLimits``, too: there are none."""

    def publish(self) -> None: ...

    def reconcile(self) -> str:
        return ""

    def published(self) -> frozenset[Any]:
        return frozenset()

    def check(self, group: Sequence[Any]) -> None: ...


def session_of(
    folder: Path,
    experiment: Experiment,
    plan: Plan,
    hosts: Hosts,
    kube: Any,
    clock: Clock,
    progress: Progress,
    judge: FakeJudge,
    recorder: EntryRecorder | None = None,
    observers: RunObservers | None = None,
    registry: PluginRegistry | None = None,
) -> RunSession:
    """A run with no workload, on a cluster that no one else changes."""
    connection = ClusterConnection(Inventory.model_validate(LAB), clock, kube, hosts, "", "")  # type: ignore[arg-type]
    loaded = LoadedExperiment(folder / "experiment.yaml", experiment, [], registry or PluginRegistry({}, {}))
    ports = (
        FakeGuard(),
        Signer(""),
        Journal(folder),
        recorder or FakeRecorder(),
        progress,
        observers or RunObservers(),
        judge,
    )
    session = RunSession(loaded, connection, plan, *ports)
    session.mirror = session.limits = FakeMirror()
    return session
