"""Gathering what the doctor's checks look at: for the doctor itself, and as preflight of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import chaos.preflight.checks
from chaos.app.connect import ClusterConnection
from chaos.app.load import LoadedExperiment, api_reads, host_facts
from chaos.app.local_identity import jump_hosts, local_identity, server_addresses
from chaos.hosts.inspection import inspect_hosts, list_objects
from chaos.kube.cluster_snapshot import get_objects
from chaos.kube.workload import namespace_for
from chaos.model.duration import parse_duration
from chaos.model.errors import Refused
from chaos.model.permission import Permission
from chaos.model.registry import PluginRegistry, discover
from chaos.plan.cluster import ClusterView, node_addresses
from chaos.plan.planner import PlanInputs, plan_step
from chaos.preflight.check import Check
from chaos.preflight.observations import LISTS, ClusterObservations, ExperimentNeeds, HostObservations
from chaos.preflight.requirements import experiment_needs

CHECKS: Mapping[str, Check] = discover(chaos.preflight.checks, "CHECK")


@dataclass(frozen=True, slots=True)
class PreflightCase:
    """An experiment, and by target the nodes that were chosen, or that might be. ``lacking`` are missing rights."""

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


@dataclass(frozen=True, slots=True)
class PreflightData:
    """``drafts`` are what plans are made of, by experiment."""

    observations: ClusterObservations
    drafts: Mapping[str, PlanInputs] = field(default_factory=dict)


def collect(
    cases: Sequence[PreflightCase],
    opened: ClusterConnection,
    catalogue: PluginRegistry,
    view: ClusterView,
    *,
    same_run: bool = False,
    on_host_inspected: Callable[[str], object] = lambda _: None,
) -> PreflightData:
    """Ask the cluster and all hosts at once. Touches nothing. ``done`` is told of each host."""
    wanted = _required_facts(cases, catalogue)
    proxy = bool(opened.inventory.cluster and opened.inventory.cluster.allow_node_proxy)
    hosts = inspect_hosts(wanted, view, opened.hosts, opened.kube, opened.clock, on_host_inspected, proxy)
    lists, unlisted = list_objects(opened.kube, LISTS)
    drafts = {case.name: _draft(case, opened, catalogue, view, hosts) for case in cases if not case.missing_permissions}
    server = server_addresses(opened.kube.server)
    signs = ClusterObservations(
        view=view,
        inventory=opened.inventory,
        experiments=tuple(_experiment_needs(case, catalogue, drafts.get(case.name)) for case in cases),
        hosts=hosts,
        lists=lists,
        list_errors=unlisted,
        local_identity=local_identity(
            server | {address for node in wanted for address in node_addresses(view.nodes[node])}
        ),
        api_server_addresses=server,
        jump_addresses=jump_hosts(opened.inventory, wanted),
        hosts_are_targets=same_run,
    )
    return PreflightData(signs, drafts)


def _required_facts(cases: Sequence[PreflightCase], catalogue: PluginRegistry) -> dict[str, frozenset[str] | None]:
    """The facts of each node's host; None where no experiment asks it anything."""
    checked = frozenset(fact for check in CHECKS.values() for fact in check.facts)
    wanted: dict[str, frozenset[str] | None] = {}
    for case in cases:
        for node, facts in host_facts(case.loaded.experiment, catalogue, case.nodes).items():
            before = wanted.get(node)
            wanted[node] = before if facts is None else facts | (before or frozenset()) | checked
    return dict(sorted(wanted.items()))


def _draft(
    case: PreflightCase,
    opened: ClusterConnection,
    catalogue: PluginRegistry,
    view: ClusterView,
    hosts: Mapping[str, HostObservations],
) -> PlanInputs:
    experiment = case.loaded.experiment
    namespace = namespace_for(case.run) if case.loaded.manifests else ""
    return PlanInputs(
        run=case.run,
        now=opened.clock.now(),
        seed=case.seed,
        experiment_text=case.loaded.path.read_bytes(),
        view=view,
        nodes_by_target=case.nodes,
        targets={node: hosts[node].target for nodes in case.nodes.values() for node in nodes},
        namespace=namespace,
        objects=get_objects(api_reads(experiment, catalogue, case.nodes, namespace), opened.kube),
        source=str(case.loaded.path.absolute()),
    )


def _experiment_needs(case: PreflightCase, catalogue: PluginRegistry, draft: PlanInputs | None) -> ExperimentNeeds:
    spec = case.loaded.experiment.spec
    use = ExperimentNeeds(
        name=case.name,
        needs=experiment_needs(case.loaded.experiment, catalogue),
        nodes=tuple(sorted({node for nodes in case.nodes.values() for node in nodes})),
        requires=spec.requires,
        max_duration=parse_duration(spec.max_duration),
        missing_permissions=case.missing_permissions,
        target_error=case.mismatch,
        source_errors=case.source_errors,
    )
    return replace(use, step_error=_preparer(case, catalogue, draft)) if draft else use


def _preparer(
    case: PreflightCase, catalogue: PluginRegistry, draft: PlanInputs
) -> Callable[[str], tuple[str, str] | None]:
    experiment = case.loaded.experiment

    def prepare(node: str) -> tuple[str, str] | None:
        """The first step that cannot be done there; of those about the cluster for ""."""
        for step in experiment.spec.method:
            if node in (case.nodes[step.target] if step.target else ("",)):
                try:
                    plan_step(experiment, step, catalogue.actions[step.action], node, draft)
                except Refused as refused:
                    return refused.message, refused.hint
        return None

    return prepare
