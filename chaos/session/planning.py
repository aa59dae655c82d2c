"""From an experiment and an open cluster to a plan."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.engine.gather import cluster_view, objects, targets
from chaos.engine.permissions import refuse_missing
from chaos.engine.workload import commands, namespace_for, removal
from chaos.judge.facts import kubelet_fact
from chaos.load.experiment import load_experiment
from chaos.load.manifests import load_manifests
from chaos.model.action import Undo
from chaos.model.assertion import AsksHosts
from chaos.model.catalogue import Catalogue
from chaos.model.experiment import Experiment
from chaos.model.inventory import Cluster
from chaos.model.marks import LOCK_NAMESPACE
from chaos.model.plan import Plan
from chaos.model.right import Right
from chaos.plan.cluster import ClusterView
from chaos.plan.guards import never_ourselves, no_timer_left
from chaos.plan.planner import Draft, make_plan, steps_on
from chaos.plan.requires import check
from chaos.plan.rights import Setting, needed
from chaos.plan.targets import choose
from chaos.session.eyes import ask_once
from chaos.session.opening import Opened, own_machine_id


@dataclass(frozen=True, slots=True)
class Loaded:
    """An experiment file with its workload's objects."""

    path: Path
    experiment: Experiment
    manifests: list[dict[str, Any]]

    def limited(self, max_duration: str | None) -> Loaded:
        """With another maxDuration: timers on hosts are planned by it too."""
        if not max_duration:
            return self
        spec = self.experiment.spec.model_copy(update={"max_duration": max_duration})
        return replace(self, experiment=self.experiment.model_copy(update={"spec": spec}))


def load(path: Path, catalogue: Catalogue) -> Loaded:
    """Raises BadInput."""
    experiment = load_experiment(path, catalogue)
    workload = experiment.spec.workload
    manifests = load_manifests([path.parent / name for name in workload.manifests]) if workload else []
    return Loaded(path, experiment, manifests)


def _in_force(requires: Mapping[str, Mapping[str, str]], config: Mapping[str, Any]) -> dict[str, float | None]:
    """What the kubelet's configuration amounts to, as the judge understands it."""
    return {name: kubelet_fact(config, f"kubelet.{name}") for name in requires.get("kubelet", {})}


def new_run(loaded: Loaded) -> str:
    """An ID that no other run has."""
    return f"{loaded.experiment.metadata.name}-{secrets.token_hex(3)}"


def rights_of(loaded: Loaded, catalogue: Catalogue, cluster: Cluster | None) -> list[Right]:
    """What an experiment needs on a cluster; that of the inventory says where the lock is kept."""
    workload = commands(loaded.manifests, "nodefall", "nodefall") if loaded.manifests else []
    gone = removal(workload, "nodefall", "nodefall") if workload else Undo()
    keeps = cluster.namespace if cluster else LOCK_NAMESPACE
    proxy, events = (cluster.allow_node_proxy, cluster.events) if cluster else (False, True)
    setting = Setting(keeps, workload, gone, proxy, events)
    return needed(loaded.experiment, catalogue, setting)


def plan(loaded: Loaded, opened: Opened, catalogue: Catalogue, seed: int | None, run: str) -> tuple[Plan, ClusterView]:
    """Choose targets, gather facts, refuse what must not be. Touches nothing."""
    refuse_missing(opened.kube, rights_of(loaded, catalogue, opened.inventory.cluster))
    seed = secrets.randbits(32) if seed is None else seed
    spec = loaded.experiment.spec
    ask_once(spec.queries, opened.inventory)
    view = cluster_view(opened.kube, opened.uid)
    chosen = choose(spec.targets, view, opened.inventory, seed)
    known = targets(host_facts(loaded.experiment, catalogue, chosen), view, opened.hosts, opened.kube)
    for node, target in known.items():
        if "machine-id" in target.facts:  # else nobody asks the host anything
            never_ourselves(own_machine_id(), target.facts["machine-id"], node)
            no_timer_left(target.facts.get("planted-timers", ()), node)
        check(spec.requires, node, {"kubelet": _in_force(spec.requires, target.facts["configz"])})
    namespace = namespace_for(run) if loaded.manifests else ""
    draft = Draft(
        run=run,
        now=opened.clock.now(),
        seed=seed,
        experiment_text=loaded.path.read_bytes(),
        view=view,
        chosen=chosen,
        targets=known,
        namespace=namespace,
        objects=objects(_reads(loaded.experiment, catalogue, chosen, namespace), opened.kube),
        source=str(loaded.path.absolute()),
    )
    return make_plan(loaded.experiment, catalogue, draft), view


def host_facts(
    experiment: Experiment, catalogue: Catalogue, chosen: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str] | None]:
    """The facts that the steps want of each node's host; None where nobody asks it anything."""
    spec = experiment.spec
    asked = [e.assert_ for e in (*spec.steady_state, *spec.hypothesis, *spec.abort) if e.assert_]
    by_host = any(isinstance(catalogue.assertions[name], AsksHosts) for name in asked)
    nothing: frozenset[str] | None = frozenset() if by_host else None
    wanted = {node: nothing for nodes in chosen.values() for node in nodes}
    for step, node in steps_on(experiment, chosen):
        action = catalogue.actions[step.action]
        if node and (action.on_host or action.facts):
            wanted[node] = (wanted[node] or frozenset()) | frozenset(action.facts)
    return wanted


def _reads(
    experiment: Experiment, catalogue: Catalogue, chosen: Mapping[str, tuple[str, ...]], namespace: str
) -> Iterator[str]:
    """Paths of the API objects that the steps' actions look at."""
    for step, node in steps_on(experiment, chosen):
        action = catalogue.actions[step.action]
        yield from action.reads(node, action.params.model_validate(step.with_), namespace)
