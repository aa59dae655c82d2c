"""Gathering what the doctor's checks look at: for the doctor itself, and as preflight of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import chaos.doctor.checks
from chaos.doctor.check import Check
from chaos.doctor.signs import LISTS, HostSigns, Signs, Use
from chaos.doctor.uses import needs
from chaos.engine.examine import examine, listed
from chaos.engine.gather import objects
from chaos.engine.workload import namespace_for
from chaos.model.catalogue import Catalogue, discover
from chaos.model.duration import parse_duration
from chaos.model.errors import Refused
from chaos.model.right import Right
from chaos.plan.cluster import ClusterView, node_addresses
from chaos.plan.planner import Draft, plan_step
from chaos.session.loading import Loaded, host_facts, reads
from chaos.session.opening import Opened
from chaos.session.own import jump_hosts, own, server_addresses

CHECKS: Mapping[str, Check] = discover(chaos.doctor.checks, "CHECK")


@dataclass(frozen=True, slots=True)
class Case:
    """An experiment, and by target the nodes that were chosen, or that might be. ``lacking`` are missing rights."""

    loaded: Loaded
    nodes: Mapping[str, tuple[str, ...]]
    run: str = "doctor"
    seed: int = 0
    lacking: tuple[Right, ...] = ()
    unfit: tuple[str, str] | None = None
    unanswered: Mapping[str, tuple[str, str] | tuple[()]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.loaded.experiment.metadata.name


@dataclass(frozen=True, slots=True)
class Looked:
    """``drafts`` are what plans are made of, by experiment."""

    signs: Signs
    drafts: Mapping[str, Draft] = field(default_factory=dict)


def look(
    cases: Sequence[Case],
    opened: Opened,
    catalogue: Catalogue,
    view: ClusterView,
    *,
    chosen: bool = False,
    done: Callable[[str], object] = lambda _: None,
) -> Looked:
    """Ask the cluster and all hosts at once. Touches nothing. ``done`` is told of each host."""
    wanted = _wanted(cases, catalogue)
    proxy = bool(opened.inventory.cluster and opened.inventory.cluster.allow_node_proxy)
    hosts = examine(wanted, view, opened.hosts, opened.kube, opened.clock, done, proxy)
    lists, unlisted = listed(opened.kube, LISTS)
    drafts = {case.name: _draft(case, opened, catalogue, view, hosts) for case in cases if not case.lacking}
    server = server_addresses(opened.kube.server)
    signs = Signs(
        view=view,
        inventory=opened.inventory,
        uses=tuple(_use(case, catalogue, drafts.get(case.name)) for case in cases),
        hosts=hosts,
        lists=lists,
        unlisted=unlisted,
        own=own(server | {address for node in wanted for address in node_addresses(view.nodes[node])}),
        server=server,
        jumps=jump_hosts(opened.inventory, wanted),
        chosen=chosen,
    )
    return Looked(signs, drafts)


def _wanted(cases: Sequence[Case], catalogue: Catalogue) -> dict[str, frozenset[str] | None]:
    """The facts of each node's host; None where no experiment asks it anything."""
    checked = frozenset(fact for check in CHECKS.values() for fact in check.facts)
    wanted: dict[str, frozenset[str] | None] = {}
    for case in cases:
        for node, facts in host_facts(case.loaded.experiment, catalogue, case.nodes).items():
            before = wanted.get(node)
            wanted[node] = before if facts is None else facts | (before or frozenset()) | checked
    return dict(sorted(wanted.items()))


def _draft(
    case: Case, opened: Opened, catalogue: Catalogue, view: ClusterView, hosts: Mapping[str, HostSigns]
) -> Draft:
    experiment = case.loaded.experiment
    namespace = namespace_for(case.run) if case.loaded.manifests else ""
    return Draft(
        run=case.run,
        now=opened.clock.now(),
        seed=case.seed,
        experiment_text=case.loaded.path.read_bytes(),
        view=view,
        chosen=case.nodes,
        targets={node: hosts[node].target for nodes in case.nodes.values() for node in nodes},
        namespace=namespace,
        objects=objects(reads(experiment, catalogue, case.nodes, namespace), opened.kube),
        source=str(case.loaded.path.absolute()),
    )


def _use(case: Case, catalogue: Catalogue, draft: Draft | None) -> Use:
    spec = case.loaded.experiment.spec
    use = Use(
        name=case.name,
        needs=needs(case.loaded.experiment, catalogue),
        nodes=tuple(sorted({node for nodes in case.nodes.values() for node in nodes})),
        requires=spec.requires,
        max_duration=parse_duration(spec.max_duration),
        lacking=case.lacking,
        unfit=case.unfit,
        unanswered=case.unanswered,
    )
    return replace(use, prepare=_preparer(case, catalogue, draft)) if draft else use


def _preparer(case: Case, catalogue: Catalogue, draft: Draft) -> Callable[[str], tuple[str, str] | None]:
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
