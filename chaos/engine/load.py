"""Loads experiments, and derives what they need from a cluster and its hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chaos.cluster.workload import create_commands, removal, workload_state
from chaos.core.action import Undo
from chaos.core.assertion import HostFactAssertion
from chaos.core.cluster_view import ClusterView
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.core.kube import operating_system
from chaos.core.labels import LOCK_NAMESPACE
from chaos.core.permission import Permission
from chaos.core.registry import PluginRegistry
from chaos.documents.experiment import load_experiment
from chaos.documents.manifests import load_manifests
from chaos.documents.yaml_text import dump
from chaos.engine.helper_pods import helper_namespaces
from chaos.engine.planning.permissions import PermissionInputs, compute_permissions
from chaos.engine.planning.planner import expand_steps
from chaos.engine.registry import load_registry


@dataclass(frozen=True, slots=True)
class LoadedExperiment:
    """An experiment file with the manifests of its workload, and the plug-ins that it names.

    ``text``: the document, None to read it from the file.
    """

    path: Path
    experiment: Experiment
    manifests: list[dict[str, Any]]
    registry: PluginRegistry = field(repr=False, compare=False)
    text: bytes | None = None

    @property
    def document(self) -> bytes:
        """The text of the document, as it is run, stored and hashed. Raises OSError."""
        return self.path.read_bytes() if self.text is None else self.text

    def with_experiment(self, experiment: Experiment) -> LoadedExperiment:
        """A copy with a changed experiment, whose document is written out; the paths of its manifests are absolute."""
        return replace(self, experiment=experiment, text=experiment_document(experiment, self.path.parent))

    def with_max_duration(self, max_duration: str | None) -> LoadedExperiment:
        """A copy with another maxDuration, which also sets the failsafe timers on hosts; unchanged if None."""
        if not max_duration:
            return self
        spec = self.experiment.spec.model_copy(update={"max_duration": max_duration})
        return replace(self, experiment=self.experiment.model_copy(update={"spec": spec}))


def experiment_document(experiment: Experiment, folder: Path) -> bytes:
    """The experiment as YAML that loads identically from any folder. Its paths are relative to ``folder``."""
    document = experiment.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if workload := document["spec"].get("workload"):
        workload["manifests"] = [str((folder / name).resolve()) for name in workload["manifests"]]
    return dump([document]).encode()


def load(path: Path, registry: PluginRegistry | None = None) -> LoadedExperiment:
    """Load an experiment and its manifests, by default with the plug-ins of this installation. Raises BadInput."""
    registry = registry or load_registry()
    experiment = load_experiment(path, registry)
    workload = experiment.spec.workload
    manifests = load_manifests([path.parent / name for name in workload.manifests]) if workload else []
    return LoadedExperiment(path, experiment, manifests, registry)


def required_permissions(loaded: LoadedExperiment, inventory: Inventory | None) -> list[Permission]:
    """The permissions that a run needs; ``inventory`` sets the namespaces and optional features."""
    cluster, helpers = (inventory.cluster, helper_namespaces(inventory)) if inventory else (None, [])
    workload = create_commands(loaded.manifests, "nodefall", "nodefall") if loaded.manifests else []
    undo = removal(workload_state(workload), "nodefall", "nodefall") if workload else Undo()
    lock_namespace = cluster.namespace if cluster else LOCK_NAMESPACE
    proxy, events = (cluster.allow_node_proxy, cluster.events) if cluster else (False, True)
    inputs = PermissionInputs(lock_namespace, workload, undo, proxy, events, helpers)
    return compute_permissions(loaded.experiment, inputs)


def host_facts(
    experiment: Experiment, nodes_by_target: Mapping[str, tuple[str, ...]], view: ClusterView
) -> dict[str, frozenset[str] | None]:
    """The facts that the steps need, by node; None for a host that the experiment does not use."""
    bound = [each.bound for each in experiment.spec.expectations if each.bound]
    uses_hosts = any(isinstance(each.assertion, HostFactAssertion) for each in bound)
    initial: frozenset[str] | None = frozenset() if uses_hosts else None
    needed = {node: initial for nodes in nodes_by_target.values() for node in nodes}
    for step, node in expand_steps(experiment, nodes_by_target):
        facts = step.bound.needs_on(_system_of(node, view)).facts
        if node and (step.bound.action.on_host or facts):
            needed[node] = (needed[node] or frozenset()) | frozenset(facts)
    return needed


def _system_of(node: str, view: ClusterView) -> str:
    """The operating system of a node; "" for a step on the cluster."""
    return operating_system(view.nodes[node]) if node else "linux"


def api_reads(
    experiment: Experiment, nodes_by_target: Mapping[str, tuple[str, ...]], namespace: str, view: ClusterView
) -> Iterator[str]:
    """Paths of the API objects that the actions of the steps read."""
    for step, node in expand_steps(experiment, nodes_by_target):
        yield from step.bound.needs_on(_system_of(node, view)).paths(node, namespace)
