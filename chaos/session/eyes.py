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
from chaos.plan.rights import asks_controller_manager

if TYPE_CHECKING:
    from chaos.model.catalogue import Catalogue
    from chaos.model.experiment import Experiment
    from chaos.model.inventory import ControllerManager, Inventory, Prometheus
    from chaos.model.plan import Plan
    from chaos.model.ports import Observer
    from chaos.observers.prometheus import PrometheusObserver
    from chaos.observers.promql import PromQL
    from chaos.observers.scraper import Scrapers
    from chaos.session.opening import Opened

ALWAYS = ("machine", "boot-id", "pid1-start", "inhibitors")  # read of every target, whatever the steps ask for
EXTRAS = ("containers", "host-time", "kubelet-journal")  # read where the host can tell


@dataclass(frozen=True, slots=True)
class Eyes:
    """Observers, started stage by stage; and what is looked at once more before the final judgement."""

    stages: Sequence[Sequence[Observer]]
    last_looks: Sequence[Callable[[], None]]


def eyes_for(experiment: Experiment, catalogue: Catalogue, opened: Opened, planned: Plan) -> Eyes:
    """Eyes on the cluster first; those on kubelets and hosts ask them for addresses."""
    from chaos.engine.hostwatch import HostWatch
    from chaos.observers.clocks import ClockOffsets
    from chaos.observers.cluster import ClusterObservers
    from chaos.observers.probe import observer

    nodes = sorted({target.node for target in planned.targets})
    facts = set(ALWAYS)
    for step in planned.steps:
        facts.update(catalogue.actions[step.action].probes)
    known = [node for node in nodes if "machine-id" in planned.facts[node]]  # else nobody asks the host anything
    cluster = ClusterObservers(opened.kube, opened.clock)
    proxy = bool(opened.inventory.cluster and opened.inventory.cluster.allow_node_proxy)
    hosts = HostWatch(opened.hosts, opened.clock, known, sorted(facts), EXTRAS)
    probes = [
        observer(probe, opened.kube, cluster.health, planned.namespace, opened.clock)
        for probe in experiment.spec.probes
    ]
    controllers = _on_controllers(experiment, catalogue, opened)
    asking = _on_prometheus(experiment.spec.queries, opened)
    clocks = ClockOffsets(opened.clock, [cluster.health.offsets, hosts.offsets, *(a.offsets for a in asking)])
    stages: list[list[Observer]] = [
        list(cluster.watches),
        [cluster.kubelets(nodes, proxy), *controllers, hosts, *probes, *asking, clocks],
    ]
    return Eyes(stages, [*(each.last_look for each in asking), clocks.last_look])


def askings(experiment: Experiment, catalogue: Catalogue, opened: Opened) -> dict[str, Callable[[], None]]:
    """By whom else it asks than the API server and hosts: a question to each, which raises NodefallError."""
    asked: dict[str, Callable[[], None]] = {}
    if experiment.spec.queries:
        asked["prometheus"] = partial(ask_once, experiment.spec.queries, opened.inventory)
    if asks_controller_manager(experiment, catalogue):
        asked["controller-manager"] = partial(_ask_controllers, opened)
    return asked


def _ask_controllers(opened: Opened) -> None:
    from chaos.observers.controller_manager import ask_each

    ask_each(_controller_manager(opened.inventory).urls, opened.kube.component)


def _on_controllers(experiment: Experiment, catalogue: Catalogue, opened: Opened) -> list[Scrapers]:
    from chaos.observers.controller_manager import controller_managers

    if not asks_controller_manager(experiment, catalogue):
        return []
    return [controller_managers(_controller_manager(opened.inventory).urls, opened.kube.component, opened.clock)]


def _controller_manager(inventory: Inventory) -> ControllerManager:
    """Raises Refused where the inventory names none."""
    if inventory.cluster is None or inventory.cluster.controller_manager is None:
        raise Refused(
            "the experiment asks for metrics of the controller-manager",
            hint="add controllerManager: {urls: [...]} to cluster in the inventory (docs/recordings.md)",
        )
    return inventory.cluster.controller_manager


def ask_once(queries: Sequence[Query], inventory: Inventory) -> None:
    """Raises NodefallError where Prometheus is not there, or does not understand a query."""
    if not queries:
        return
    server = _connected(_server(inventory))
    for query in queries:
        server.instant(query.query)


def _on_prometheus(queries: Sequence[Query], opened: Opened) -> list[PrometheusObserver]:
    from chaos.observers.prometheus import PrometheusObserver

    if not queries:
        return []
    server = _server(opened.inventory)
    return [PrometheusObserver(_connected(server), queries, parse_duration(server.stale_after), opened.clock)]


def _server(inventory: Inventory) -> Prometheus:
    """Raises Refused where the inventory names none."""
    if inventory.prometheus is None:
        raise Refused("the experiment asks Prometheus", hint="add prometheus: {url: ...} to the inventory")
    return inventory.prometheus


def _connected(server: Prometheus) -> PromQL:
    """Nothing is sent yet. Raises Refused for a secret that is not there."""
    from chaos.observers.promql import PromQL
    from chaos.power.secrets import Place, read_secret

    secret = read_secret(server.credentials, Place(os.environ, Path.home())) if server.credentials else ""
    return PromQL(server.url, secret, server.user or "")
