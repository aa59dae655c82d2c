"""The observers of a run: the built-in observers of the cluster, and the observers that plug-ins add for the
experiment.
"""

# ruff: noqa: PLC0415 - slow imports are deferred
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chaos.core.api_fact import PseudoFact
from chaos.core.probes import Query
from chaos.engine.planning.permissions import uses_controller_manager
from chaos.machines.local import resolve_secret

if TYPE_CHECKING:
    from chaos.cluster.observers.plugin import (
        FinalSampler,
        ObservedCluster,
        ObserverContext,
        ObserverPlugin,
        WatchCurrency,
    )
    from chaos.core.experiment import Experiment
    from chaos.core.inventory import Inventory
    from chaos.core.plan import Plan
    from chaos.core.ports import Observer
    from chaos.engine.connection import ClusterConnection
    from chaos.engine.load import LoadedExperiment

BASE_FACTS = (PseudoFact.MACHINE, "boot-id", "pid1-start", "inhibitor-locks")  # read on every target


@dataclass(frozen=True, slots=True)
class RunObservers:
    """The observers of a run. They start in stages, so that observers of a later stage can use what earlier ones saw.

    ``samplers`` take a sample before the final judgement. ``currency`` proves the freshness of the watches.
    """

    stages: Sequence[Sequence[Observer]] = ()
    samplers: Sequence[FinalSampler] = ()
    currency: WatchCurrency | None = None

    def prove_at(self, moments: Iterable[float]) -> None:
        """Also prove the freshness of the relevant watches at these moments."""
        if self.currency:
            self.currency.prove_at(moments)

    def watch_closely(self) -> AbstractContextManager[None]:
        """Prove the freshness of the watches now, and continuously until the block ends."""
        return self.currency.watch_closely() if self.currency else nullcontext()


def observer_plugins() -> Mapping[str, ObserverPlugin]:
    """The observer plug-ins by name, built in and from other distributions. Raises PluginError."""
    import chaos.cluster.observers
    import chaos.machines
    from chaos.cluster.observers.plugin import KIND
    from chaos.core.errors import PluginError
    from chaos.core.registry import Group, discover

    hosts = discover(chaos.machines, "OBSERVER")
    others = discover(chaos.cluster.observers, "OBSERVER", Group.OBSERVERS, KIND)
    for name in hosts.keys() & others.keys():
        raise PluginError(f"duplicate plug-in name {name!r}: built in, and another distribution")
    return hosts | others


def build_observers(
    loaded: LoadedExperiment, connection: ClusterConnection, plan: Plan, cluster: ObservedCluster
) -> RunObservers:
    """The observers of a plan. The ``cluster`` observers start first, because others look up its addresses."""
    from chaos.cluster.observers.plugin import ClockOffsetObserver, FinalSampler, OffsetSource

    context = _context(loaded, connection, plan, cluster)
    built = [observer for plugin in observer_plugins().values() for observer in plugin.build(context)]
    measured = [each for each in (cluster.health, *built) if isinstance(each, OffsetSource)]
    clocks = ClockOffsetObserver(connection.clock, [each.offsets for each in measured])
    samplers = [each for each in (*built, clocks, cluster.currency) if isinstance(each, FinalSampler)]
    return RunObservers([list(cluster.watches), [*built, clocks]], samplers, cluster.currency)


def observe_cluster(
    loaded: LoadedExperiment, connection: ClusterConnection, note: Callable[[str], None]
) -> ObservedCluster:
    """The observers of a cluster that is reached over the network. ``note`` describes a wait to the user."""
    from chaos.cluster.observers.cluster import ClusterObservers
    from chaos.verdicts.judge.notes import relevant_resources

    relevant = relevant_resources(loaded.experiment)
    return ClusterObservers(connection.kube, connection.clock, relevant, note)


def _context(
    loaded: LoadedExperiment, connection: ClusterConnection, plan: Plan, cluster: ObservedCluster
) -> ObserverContext:
    from chaos.cluster.observers.metrics import SOURCE
    from chaos.cluster.observers.plugin import ObserverContext

    experiment = loaded.experiment
    nodes = sorted({target.node for target in plan.targets})
    facts = set(BASE_FACTS)
    bound = {step.name: step.bound for step in experiment.spec.method}
    for step in plan.steps:
        facts.update(bound[step.step].needs_on(connection.hosts.system_of(step.node)).proof_facts)
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
        sources=frozenset({SOURCE}) if uses_controller_manager(experiment) else frozenset(),
        read_secret=resolve_secret,
    )


def source_checks(experiment: Experiment, connection: ClusterConnection) -> dict[str, Callable[[], None]]:
    """Checks of the metric sources that an experiment uses, by name; each raises NodefallError if it fails."""
    checks: dict[str, Callable[[], None]] = {}

    if experiment.spec.queries:
        checks["prometheus"] = partial(check_prometheus, experiment.spec.queries, connection.inventory)
    if uses_controller_manager(experiment):
        checks["controller-manager"] = partial(_check_controller_managers, connection)
    return checks


def _check_controller_managers(connection: ClusterConnection) -> None:
    from chaos.cluster.observers.metrics import controller_manager_urls, verify_reachable

    verify_reachable(controller_manager_urls(connection.inventory), connection.kube.component)


def check_prometheus(queries: Sequence[Query], inventory: Inventory) -> None:
    """Run each query once. Raises NodefallError if Prometheus is unreachable, has old data or rejects a query."""
    from chaos.cluster.observers.prometheus import check_freshness, make_client, prometheus_settings

    if not queries:
        return
    settings = prometheus_settings(inventory)
    client = make_client(settings, resolve_secret)
    for query in queries:
        client.query(query.query)
    check_freshness(client, settings, [query.query for query in queries])
