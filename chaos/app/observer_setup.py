"""The observers of a run: those of the cluster, and what the observer plug-ins build for the experiment."""

# ruff: noqa: PLC0415 - slow imports are deferred
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chaos.app.inventory_secrets import resolve_secret
from chaos.core.api_fact import PseudoFact
from chaos.core.probes import Query
from chaos.engine.planning.permissions import uses_controller_manager

if TYPE_CHECKING:
    from chaos.app.connect import ClusterConnection
    from chaos.cluster.observers.plugin import ObservedCluster, ObserverContext, ObserverPlugin
    from chaos.core.experiment import Experiment
    from chaos.core.inventory import Inventory
    from chaos.core.plan import Plan
    from chaos.core.ports import Observer
    from chaos.core.registry import PluginRegistry

BASE_FACTS = (PseudoFact.MACHINE, "boot-id", "pid1-start", "inhibitor-locks")  # read on every target


# From the connection, the resources that the experiment asks about, and what describes a wait to people.
ObserveFunc = Callable[["ClusterConnection", Collection[str], Callable[[str], None]], "ObservedCluster"]


@dataclass(frozen=True, slots=True)
class ObserverSet:
    """Observers, started stage by stage, and the samples to take before the final judgement.

    ``prove_at``, ``watch_closely``: take proofs at moments, or during times, at which it matters what was delivered.
    """

    stages: Sequence[Sequence[Observer]]
    final_samples: Sequence[Callable[[], None]]
    prove_at: Callable[[Iterable[float]], None]
    watch_closely: Callable[[], AbstractContextManager[None]]


def observer_plugins() -> Mapping[str, ObserverPlugin]:
    """The observer plug-ins by name, built in and from other distributions. Raises PluginError."""
    import chaos.cluster.observers
    import chaos.machines
    from chaos.core.errors import PluginError
    from chaos.core.registry import Group, discover

    hosts, others = discover(chaos.machines, "OBSERVER"), discover(chaos.cluster.observers, "OBSERVER", Group.OBSERVERS)
    for name in hosts.keys() & others.keys():
        raise PluginError(f"duplicate plug-in name {name!r}: built in, and another distribution")
    return hosts | others


def observe_cluster(
    connection: ClusterConnection, relevant: Collection[str], note: Callable[[str], None]
) -> ObservedCluster:
    """The observers of a cluster that is reached over the network."""
    from chaos.cluster.observers.cluster import ClusterObservers

    return ClusterObservers(connection.kube, connection.clock, relevant, note)


def build_observers(
    experiment: Experiment,
    registry: PluginRegistry,
    connection: ClusterConnection,
    plan: Plan,
    note: Callable[[str], None],
    observe: ObserveFunc = observe_cluster,
) -> ObserverSet:
    """The observers of a plan. Those of the cluster, made by ``observe``, start first: others look up its addresses.

    ``note`` describes a wait to people.
    """
    from chaos.cluster.observers.clock_offsets import ClockOffsetObserver
    from chaos.cluster.observers.plugin import FinalSampler, OffsetSource
    from chaos.verdicts.judge.notes import relevant_resources

    cluster = observe(connection, relevant_resources(experiment, registry), note)
    context = _context(experiment, registry, connection, plan, cluster)
    built = [observer for plugin in observer_plugins().values() for observer in plugin.build(context)]
    measured = [each for each in (context.cluster.health, *built) if isinstance(each, OffsetSource)]
    clocks = ClockOffsetObserver(connection.clock, [each.offsets for each in measured])
    samplers = [each for each in (*built, clocks, context.cluster.currency) if isinstance(each, FinalSampler)]
    return ObserverSet(
        [list(context.cluster.watches), [*built, clocks]],
        [each.final_sample for each in samplers],
        context.cluster.currency.prove_at,
        context.cluster.currency.watch_closely,
    )


def _context(
    experiment: Experiment,
    registry: PluginRegistry,
    connection: ClusterConnection,
    plan: Plan,
    cluster: ObservedCluster,
) -> ObserverContext:
    from chaos.cluster.observers.controller_manager import SOURCE
    from chaos.cluster.observers.plugin import ObserverContext

    nodes = sorted({target.node for target in plan.targets})
    facts = set(BASE_FACTS)
    for step in plan.steps:
        action = registry.action_on(step.action, connection.hosts.system_of(step.node))
        facts.update(action.proof_facts_for(action.params.model_validate(step.params)))
    return ObserverContext(
        api=connection.kube,
        clock=connection.clock,
        hosts=connection.hosts,
        cluster=cluster,
        experiment=experiment,
        inventory=connection.inventory,
        plan=plan,
        nodes=nodes,
        reachable=[node for node in nodes if "machine-id" in plan.facts[node]],  # no step uses other hosts
        facts=sorted(facts),
        sources=frozenset({SOURCE}) if uses_controller_manager(experiment, registry) else frozenset(),
        read_secret=resolve_secret,
    )


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
    from chaos.cluster.observers.controller_manager import controller_manager_urls, verify_reachable

    verify_reachable(controller_manager_urls(connection.inventory), connection.kube.component)


def check_prometheus(queries: Sequence[Query], inventory: Inventory) -> None:
    """Run each query once. Raises NodefallError if Prometheus is unreachable or rejects a query."""
    from chaos.cluster.observers.prometheus import make_client, prometheus_settings

    if not queries:
        return
    client = make_client(prometheus_settings(inventory), resolve_secret)
    for query in queries:
        client.query(query.query)
