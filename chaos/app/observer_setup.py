"""Which eyes a run opens: on the cluster, its kubelets, controllers and hosts, the user's endpoints, Prometheus."""

# ruff: noqa: PLC0415 - what is slow to import is imported where it is needed
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

BASE_FACTS = ("machine", "boot-id", "pid1-start", "inhibitors")  # read of every target, whatever the steps ask for
OPTIONAL_FACTS = ("containers", "host-time", "kubelet-journal")  # read where the host can tell


@dataclass(frozen=True, slots=True)
class ObserverSet:
    """Observers, started stage by stage; and what is looked at once more before the final judgement."""

    stages: Sequence[Sequence[Observer]]
    final_samples: Sequence[Callable[[], None]]


def build_observers(
    experiment: Experiment, catalogue: PluginRegistry, opened: ClusterConnection, planned: Plan
) -> ObserverSet:
    """Eyes on the cluster first; those on kubelets and hosts ask them for addresses."""
    from chaos.hosts.observer import HostObserver
    from chaos.observers.clock_offsets import ClockOffsetObserver
    from chaos.observers.cluster import ClusterObservers
    from chaos.observers.probe import build_probe_observer

    nodes = sorted({target.node for target in planned.targets})
    facts = set(BASE_FACTS)
    for step in planned.steps:
        facts.update(catalogue.actions[step.action].proof_facts)
    known = [node for node in nodes if "machine-id" in planned.facts[node]]  # else nobody asks the host anything
    cluster = ClusterObservers(opened.kube, opened.clock)
    proxy = bool(opened.inventory.cluster and opened.inventory.cluster.allow_node_proxy)
    hosts = HostObserver(opened.hosts, opened.clock, known, sorted(facts), OPTIONAL_FACTS)
    probes = [
        build_probe_observer(probe, opened.kube, cluster.health, planned.namespace, opened.clock)
        for probe in experiment.spec.probes
    ]
    controllers = _controller_manager_scrapers(experiment, catalogue, opened)
    asking = _prometheus_observers(experiment.spec.queries, opened)
    clocks = ClockOffsetObserver(opened.clock, [cluster.health.offsets, hosts.offsets, *(a.offsets for a in asking)])
    stages: list[list[Observer]] = [
        list(cluster.watches),
        [cluster.kubelets(nodes, proxy), *controllers, hosts, *probes, *asking, clocks],
    ]
    return ObserverSet(stages, [*(each.final_sample for each in asking), clocks.final_sample])


def source_checks(
    experiment: Experiment, catalogue: PluginRegistry, opened: ClusterConnection
) -> dict[str, Callable[[], None]]:
    """By whom else it asks than the API server and hosts: a question to each, which raises NodefallError."""
    asked: dict[str, Callable[[], None]] = {}
    if experiment.spec.queries:
        asked["prometheus"] = partial(check_prometheus, experiment.spec.queries, opened.inventory)
    if uses_controller_manager(experiment, catalogue):
        asked["controller-manager"] = partial(_check_controller_managers, opened)
    return asked


def _check_controller_managers(opened: ClusterConnection) -> None:
    from chaos.observers.controller_manager import verify_reachable

    verify_reachable(_controller_manager_settings(opened.inventory).urls, opened.kube.component)


def _controller_manager_scrapers(
    experiment: Experiment, catalogue: PluginRegistry, opened: ClusterConnection
) -> list[MetricsObserver]:
    from chaos.observers.controller_manager import controller_managers

    if not uses_controller_manager(experiment, catalogue):
        return []
    return [
        controller_managers(_controller_manager_settings(opened.inventory).urls, opened.kube.component, opened.clock)
    ]


def _controller_manager_settings(inventory: Inventory) -> ControllerManager:
    """Raises Refused where the inventory names none."""
    if inventory.cluster is None or inventory.cluster.controller_manager is None:
        raise Refused(
            "the experiment asks for metrics of the controller-manager",
            hint="add controllerManager: {urls: [...]} to cluster in the inventory (docs/recordings.md)",
        )
    return inventory.cluster.controller_manager


def check_prometheus(queries: Sequence[Query], inventory: Inventory) -> None:
    """Raises NodefallError where Prometheus is not there, or does not understand a query."""
    if not queries:
        return
    server = _prometheus_client(_prometheus_settings(inventory))
    for query in queries:
        server.query(query.query)


def _prometheus_observers(queries: Sequence[Query], opened: ClusterConnection) -> list[PrometheusObserver]:
    from chaos.observers.prometheus import PrometheusObserver

    if not queries:
        return []
    server = _prometheus_settings(opened.inventory)
    return [PrometheusObserver(_prometheus_client(server), queries, parse_duration(server.stale_after), opened.clock)]


def _prometheus_settings(inventory: Inventory) -> Prometheus:
    """Raises Refused where the inventory names none."""
    if inventory.prometheus is None:
        raise Refused("the experiment asks Prometheus", hint="add prometheus: {url: ...} to the inventory")
    return inventory.prometheus


def _prometheus_client(server: Prometheus) -> PrometheusClient:
    """Nothing is sent yet. Raises Refused for a secret that is not there."""
    from chaos.hosts.power.secrets import SecretContext, read_secret
    from chaos.observers.promql import PrometheusClient

    secret = read_secret(server.credentials, SecretContext(os.environ, Path.home())) if server.credentials else ""
    return PrometheusClient(server.url, secret, server.user or "")
