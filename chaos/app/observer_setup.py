"""The observers of a run: of the cluster, kubelets, controllers, hosts, the user's endpoints and Prometheus."""

# ruff: noqa: PLC0415 - slow imports are deferred
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.model.duration import parse_duration
from chaos.model.errors import Refused
from chaos.model.experiment import Query
from chaos.plan.permissions import uses_controller_manager

if TYPE_CHECKING:
    from chaos.app.connect import ClusterConnection
    from chaos.model.experiment import Experiment
    from chaos.model.inventory import ControllerManager, Inventory, Prometheus
    from chaos.model.plan import Plan
    from chaos.model.ports import Observer
    from chaos.model.registry import PluginRegistry
    from chaos.observers.prometheus import PrometheusObserver
    from chaos.observers.promql import PrometheusClient
    from chaos.observers.scraper import MetricsObserver

BASE_FACTS = ("machine", "boot-id", "pid1-start", "inhibitor-locks")  # read on every target
OPTIONAL_FACTS = ("containers", "host-time", "kubelet-journal")  # read where the host supports them


@dataclass(frozen=True, slots=True)
class ObserverSet:
    """Observers, started stage by stage, and the samples to take before the final judgement."""

    stages: Sequence[Sequence[Observer]]
    final_samples: Sequence[Callable[[], None]]


def build_observers(
    experiment: Experiment, registry: PluginRegistry, connection: ClusterConnection, plan: Plan
) -> ObserverSet:
    """The observers of a plan. Those of the cluster start first: those of kubelets and hosts need its addresses."""
    from chaos.hosts.observer import HostObserver
    from chaos.observers.clock_offsets import ClockOffsetObserver
    from chaos.observers.cluster import ClusterObservers
    from chaos.observers.probe import build_probe_observer

    nodes = sorted({target.node for target in plan.targets})
    facts = set(BASE_FACTS)
    for step in plan.steps:
        action = registry.actions[step.action]
        facts.update(action.proof_facts_for(action.params.model_validate(step.params)))
    reachable = [node for node in nodes if "machine-id" in plan.facts[node]]  # other hosts are not used by any step
    cluster = ClusterObservers(connection.kube, connection.clock)
    proxy = bool(connection.inventory.cluster and connection.inventory.cluster.allow_node_proxy)
    hosts = HostObserver(connection.hosts, connection.clock, reachable, sorted(facts), OPTIONAL_FACTS)
    probes = [
        build_probe_observer(probe, connection.kube, cluster.health, plan.namespace, connection.clock)
        for probe in experiment.spec.probes
    ]
    controllers = _controller_manager_scrapers(experiment, registry, connection)
    prometheus = _prometheus_observers(experiment.spec.queries, connection)
    clocks = ClockOffsetObserver(
        connection.clock, [cluster.health.offsets, hosts.offsets, *(each.offsets for each in prometheus)]
    )
    stages: list[list[Observer]] = [
        list(cluster.watches),
        [cluster.kubelets(nodes, proxy), *controllers, hosts, *probes, *prometheus, clocks],
    ]
    return ObserverSet(stages, [*(each.final_sample for each in prometheus), clocks.final_sample])


def source_checks(
    experiment: Experiment, registry: PluginRegistry, connection: ClusterConnection
) -> dict[str, Callable[[], None]]:
    """Checks of the metric sources that an experiment uses, by name; each raises NodefallError if it fails."""
    checks: dict[str, Callable[[], None]] = {}
    if experiment.spec.queries:
        checks["prometheus"] = partial(check_prometheus, experiment.spec.queries, connection.inventory)
    if uses_controller_manager(experiment, registry):
        checks["controller-manager"] = partial(_check_controller_managers, connection)
    return checks


def _check_controller_managers(connection: ClusterConnection) -> None:
    from chaos.observers.controller_manager import verify_reachable

    verify_reachable(_controller_manager_settings(connection.inventory).urls, connection.kube.component)


def _controller_manager_scrapers(
    experiment: Experiment, registry: PluginRegistry, connection: ClusterConnection
) -> list[MetricsObserver]:
    from chaos.observers.controller_manager import controller_managers

    if not uses_controller_manager(experiment, registry):
        return []
    return [
        controller_managers(
            _controller_manager_settings(connection.inventory).urls, connection.kube.component, connection.clock
        )
    ]


def _controller_manager_settings(inventory: Inventory) -> ControllerManager:
    """The settings in the inventory. Raises Refused if there are none."""
    if inventory.cluster is None or inventory.cluster.controller_manager is None:
        raise Refused(
            "no controllerManager in the inventory: the experiment uses its metrics",
            hint="add controllerManager: {urls: [...]} to cluster in the inventory (docs/recordings.md)",
        )
    return inventory.cluster.controller_manager


def check_prometheus(queries: Sequence[Query], inventory: Inventory) -> None:
    """Run each query once. Raises NodefallError if Prometheus is unreachable or rejects a query."""
    if not queries:
        return
    server = _prometheus_client(_prometheus_settings(inventory))
    for query in queries:
        server.query(query.query)


def _prometheus_observers(queries: Sequence[Query], connection: ClusterConnection) -> list[PrometheusObserver]:
    from chaos.observers.prometheus import PrometheusObserver

    if not queries:
        return []
    server = _prometheus_settings(connection.inventory)
    return [
        PrometheusObserver(_prometheus_client(server), queries, parse_duration(server.stale_after), connection.clock)
    ]


def _prometheus_settings(inventory: Inventory) -> Prometheus:
    """The settings in the inventory. Raises Refused if there are none."""
    if inventory.prometheus is None:
        raise Refused(
            "no prometheus in the inventory: the experiment queries it",
            hint="add prometheus: {url: ...} to the inventory",
        )
    return inventory.prometheus


def _prometheus_client(server: Prometheus) -> PrometheusClient:
    """A client that has not connected yet. Raises Refused if its secret cannot be read."""
    from chaos.hosts.power.secrets import SecretContext, read_secret
    from chaos.observers.promql import PrometheusClient

    secret = read_secret(server.credentials, SecretContext(os.environ, Path.home())) if server.credentials else ""
    return PrometheusClient(server.url, secret, server.user or "")
