"""Collects the data for preflight, and derives an experiment's needs from its steps, assertions and bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import chaos.engine.preflight.checks
from chaos.cluster.cluster_state import get_objects
from chaos.cluster.workload import namespace_for
from chaos.core.action import Scope
from chaos.core.assertion import HostFactAssertion
from chaos.core.cluster_view import ClusterView, node_addresses
from chaos.core.duration import parse_duration, satisfies
from chaos.core.errors import Refused
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.core.permission import Permission
from chaos.core.registry import Group, discover
from chaos.engine.connection import ClusterConnection
from chaos.engine.helper_pods import read_helper_namespaces, refuse_unreachable_undo
from chaos.engine.inspection import inspect_hosts, list_objects
from chaos.engine.load import LoadedExperiment, api_reads, host_facts
from chaos.engine.local_identity import (
    jump_hosts,
    known_host_keys,
    local_identity,
    server_addresses,
    transport_problems,
)
from chaos.engine.observations import LISTS, ClusterObservations, ExperimentNeeds, HostObservations, Need
from chaos.engine.planning.planner import PlanInputs, plan_step
from chaos.engine.preflight.check import KIND, Check

_GRACE = "shutdownGracePeriod"


def experiment_needs(experiment: Experiment) -> frozenset[Need]:
    """The needs of all steps and assertions of an experiment."""
    return frozenset(_needs(experiment))


def _needs(experiment: Experiment) -> Iterator[Need]:
    spec = experiment.spec
    steps = [step.bound for step in spec.method]
    on_host = any(step.action.on_host and step.action.scope is Scope.NODE for step in steps)
    assertions = [each.bound.assertion for each in spec.expectations if each.bound]
    of_host = [assertion for assertion in assertions if isinstance(assertion, HostFactAssertion)]
    if on_host or of_host:
        yield Need.HOST
    if any("containers" in assertion.host_facts for assertion in of_host):
        yield Need.CONTAINERS
    if on_host:
        yield Need.ROOT
    if any(step.action.takes_down for step in steps):
        yield Need.DOWN
    if any(step.terminates_pods for step in steps):
        yield Need.ENDS_PODS
    kubelet = spec.requires.get("kubelet", {})
    if any(step.needs_on("linux").logind for step in steps):
        yield Need.LOGIND
        has_grace = any(name.startswith(_GRACE) and not satisfies(0.0, text) for name, text in kubelet.items())
        if has_grace and "ungraceful" not in spec.allow:
            yield Need.GRACEFUL
    if kubelet or "kubelet." in experiment.model_dump_json(include={"spec": {"hypothesis", "abort"}}):
        yield Need.KUBELET_CONFIG


CHECKS: Mapping[str, Check] = discover(chaos.engine.preflight.checks, Check, Group.CHECKS, KIND)


@dataclass(frozen=True, slots=True)
class PreflightCase:
    """An experiment, and by target its nodes: those selected for a run, or all candidates.

    ``mismatch`` is the error and hint if no nodes can be selected. ``source_errors`` are errors and hints of metric
    sources, by the name of their check; () for a source that responds.
    """

    loaded: LoadedExperiment
    nodes: Mapping[str, tuple[str, ...]]
    run: str = "doctor"
    seed: int = 0
    missing_permissions: tuple[Permission, ...] = ()
    mismatch: tuple[str, str] | None = None
    source_errors: Mapping[str, tuple[str, str] | tuple[()]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.loaded.experiment.metadata.name

    @property
    def is_permitted(self) -> bool:
        return not self.missing_permissions


@dataclass(frozen=True, slots=True)
class PreflightData:
    """The collected data. ``drafts`` are the planner's inputs, by experiment."""

    observations: ClusterObservations
    drafts: Mapping[str, PlanInputs] = field(default_factory=dict)


def collect(
    cases: Sequence[PreflightCase],
    connection: ClusterConnection,
    view: ClusterView,
    *,
    same_run: bool = False,
    on_host_inspected: Callable[[str], object] = lambda _: None,
) -> PreflightData:
    """Read the cluster, and all hosts concurrently, without side effects.

    ``same_run``: the nodes are the targets of one run. ``on_host_inspected`` is called with the name of each host.
    """
    required = _required_facts(cases, view)
    proxy = bool(connection.inventory.cluster and connection.inventory.cluster.allow_node_proxy)
    hosts = inspect_hosts(required, view, connection.hosts, connection.kube, connection.clock, on_host_inspected, proxy)
    lists, list_errors = list_objects(connection.kube, LISTS)
    drafts = {case.name: _draft(case, connection, view, hosts) for case in cases if case.is_permitted}
    server = server_addresses(connection.kube.server)
    addresses = {node: _address(view, node) for node in required}
    observations = ClusterObservations(
        view=view,
        inventory=connection.inventory,
        experiments=tuple(_experiment_needs(case, drafts.get(case.name), connection.inventory) for case in cases),
        hosts=hosts,
        lists=lists,
        list_errors=list_errors,
        local_identity=local_identity(
            server | {address for node in required for address in node_addresses(view.nodes[node])}
        ),
        api_server_addresses=server,
        jump_addresses=jump_hosts(connection.inventory, addresses),
        known_host_keys=known_host_keys(connection.inventory),
        transport_problems=transport_problems(connection.inventory, addresses),
        connection_risks=_connection_risks(connection),
        kubernetes=connection.version,
        hosts_are_targets=same_run,
        helper_namespaces=read_helper_namespaces(connection),
    )
    return PreflightData(observations, drafts)


def _connection_risks(connection: ClusterConnection) -> tuple[str, ...]:
    """Weaknesses of the connections to the API server and Prometheus."""
    prometheus = connection.inventory.prometheus
    return (*connection.kube.risks, *(prometheus.risks if prometheus else ()))


def _address(view: ClusterView, node: str) -> str:
    """The first InternalIP of the Node, at which its host is reached, or ""."""
    status = view.nodes[node].status
    return next((each.address for each in (status and status.addresses) or () if each.type == "InternalIP"), "")


def _required_facts(cases: Sequence[PreflightCase], view: ClusterView) -> dict[str, frozenset[str] | None]:
    """The facts to read from each node; None for a host that no experiment uses."""
    checked = frozenset(fact for check in CHECKS.values() for fact in check.facts)
    required: dict[str, frozenset[str] | None] = {}
    for case in cases:
        for node, facts in host_facts(case.loaded.experiment, case.nodes, view).items():
            earlier = required.get(node)
            required[node] = earlier if facts is None else facts | (earlier or frozenset()) | checked
    return dict(sorted(required.items()))


def _draft(
    case: PreflightCase, connection: ClusterConnection, view: ClusterView, hosts: Mapping[str, HostObservations]
) -> PlanInputs:
    experiment = case.loaded.experiment
    namespace = namespace_for(case.run) if case.loaded.manifests else ""
    return PlanInputs(
        run=case.run,
        now=connection.clock.now(),
        seed=case.seed,
        experiment_text=case.loaded.document,
        view=view,
        nodes_by_target=case.nodes,
        targets={node: hosts[node].target for nodes in case.nodes.values() for node in nodes},
        namespace=namespace,
        objects=get_objects(api_reads(experiment, case.nodes, namespace, view), connection.kube),
        source=str(case.loaded.path.absolute()),
    )


def _experiment_needs(case: PreflightCase, draft: PlanInputs | None, inventory: Inventory) -> ExperimentNeeds:
    spec = case.loaded.experiment.spec
    needs = ExperimentNeeds(
        name=case.name,
        needs=experiment_needs(case.loaded.experiment),
        nodes=tuple(sorted({node for nodes in case.nodes.values() for node in nodes})),
        requires=spec.requires,
        kubernetes=spec.kubernetes or "",
        max_duration=parse_duration(spec.max_duration),
        missing_permissions=case.missing_permissions,
        target_error=case.mismatch,
        source_errors=case.source_errors,
    )
    return replace(needs, step_error=_step_error_func(case, draft, inventory)) if draft else needs


def _step_error_func(
    case: PreflightCase, draft: PlanInputs, inventory: Inventory
) -> Callable[[str], tuple[str, str] | None]:
    experiment = case.loaded.experiment

    def step_error(node: str) -> tuple[str, str] | None:
        """Error and hint of the first step that cannot be prepared on ``node``; "" stands for the cluster."""
        for step in experiment.spec.method:
            if node in (case.nodes[step.target] if step.target else ("",)):
                try:
                    planned = plan_step(experiment, step, node, draft)
                    refuse_unreachable_undo(inventory, step.bound.action, planned)
                except Refused as refused:
                    return refused.message, refused.hint
        return None

    return step_error
