"""Experiments from files, and what they will ask of a cluster and its hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.kube.workload import create_commands, removal
from chaos.load.experiment import load_experiment
from chaos.load.manifests import load_manifests
from chaos.model.action import Undo
from chaos.model.assertion import HostFactAssertion
from chaos.model.experiment import Experiment
from chaos.model.inventory import Cluster
from chaos.model.labels import LOCK_NAMESPACE
from chaos.model.permission import Permission
from chaos.model.registry import PluginRegistry
from chaos.plan.permissions import PermissionInputs, compute_permissions
from chaos.plan.planner import expand_steps


@dataclass(frozen=True, slots=True)
class LoadedExperiment:
    """An experiment file with its workload's objects."""

    path: Path
    experiment: Experiment
    manifests: list[dict[str, Any]]

    def with_max_duration(self, max_duration: str | None) -> LoadedExperiment:
        """With another maxDuration: timers on hosts are planned by it too."""
        if not max_duration:
            return self
        spec = self.experiment.spec.model_copy(update={"max_duration": max_duration})
        return replace(self, experiment=self.experiment.model_copy(update={"spec": spec}))


def load(path: Path, catalogue: PluginRegistry) -> LoadedExperiment:
    """Raises BadInput."""
    experiment = load_experiment(path, catalogue)
    workload = experiment.spec.workload
    manifests = load_manifests([path.parent / name for name in workload.manifests]) if workload else []
    return LoadedExperiment(path, experiment, manifests)


def required_permissions(
    loaded: LoadedExperiment, catalogue: PluginRegistry, cluster: Cluster | None
) -> list[Permission]:
    """What an experiment needs on a cluster; that of the inventory says where the lock is kept."""
    workload = create_commands(loaded.manifests, "nodefall", "nodefall") if loaded.manifests else []
    gone = removal(workload, "nodefall", "nodefall") if workload else Undo()
    keeps = cluster.namespace if cluster else LOCK_NAMESPACE
    proxy, events = (cluster.allow_node_proxy, cluster.events) if cluster else (False, True)
    setting = PermissionInputs(keeps, workload, gone, proxy, events)
    return compute_permissions(loaded.experiment, catalogue, setting)


def host_facts(
    experiment: Experiment, catalogue: PluginRegistry, chosen: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str] | None]:
    """The facts that the steps want of each node's host; None where nobody asks it anything."""
    spec = experiment.spec
    asked = [e.assert_ for e in (*spec.steady_state, *spec.hypothesis, *spec.abort) if e.assert_]
    by_host = any(isinstance(catalogue.assertions[name], HostFactAssertion) for name in asked)
    nothing: frozenset[str] | None = frozenset() if by_host else None
    wanted = {node: nothing for nodes in chosen.values() for node in nodes}
    for step, node in expand_steps(experiment, chosen):
        action = catalogue.actions[step.action]
        if node and (action.on_host or action.facts):
            wanted[node] = (wanted[node] or frozenset()) | frozenset(action.facts)
    return wanted


def api_reads(
    experiment: Experiment, catalogue: PluginRegistry, chosen: Mapping[str, tuple[str, ...]], namespace: str
) -> Iterator[str]:
    """Paths of the API objects that the steps' actions look at."""
    for step, node in expand_steps(experiment, chosen):
        action = catalogue.actions[step.action]
        yield from action.api_reads(node, action.params.model_validate(step.with_), namespace)
