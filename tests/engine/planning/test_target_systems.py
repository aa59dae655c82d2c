"""Operating systems of targets: nodes on which a step has no commands are not chosen, unless the target names them."""

from __future__ import annotations

from typing import Any

import pytest

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.core.action import Action
from chaos.core.cluster_view import ClusterView
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.core.kube import Condition, Node, NodeInfo, NodeMetadata, NodeStatus
from chaos.core.registry import PluginRegistry, discover
from chaos.core.target_spec import TargetSpec
from chaos.engine.planning.targets import planned_targets, select_nodes, select_workload_nodes

REGISTRY = PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))
READY = {"assert": "nodes-ready", "with": {"nodes": "all"}}
HEAD = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
INVENTORY = Inventory.model_validate(
    {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "t"},
        "cluster": {"kubeconfig": "k"},
    }
)


def experiment(target: dict[str, Any], *actions: str) -> Experiment:
    method = [{"name": f"s{i}", "action": action, "target": "victim"} for i, action in enumerate(actions)]
    spec = {"title": "t", "targets": {"victim": target}, "steadyState": [READY], "hypothesis": [READY]}
    return REGISTRY.bind(Experiment.model_validate(HEAD | {"spec": spec | {"method": method}}))


@pytest.mark.parametrize(
    ("target", "actions", "system"),
    [
        ({"role": "worker"}, ("poweroff",), "linux"),
        ({"role": "worker"}, ("cordon", "poweroff"), "linux"),
        ({"role": "worker"}, ("cordon",), None),
        ({"os": "windows"}, ("poweroff",), "windows"),
        ({"nodes": ["win-1"]}, ("poweroff",), None),
    ],
)
def test_system_of_a_target(target: dict[str, Any], actions: tuple[str, ...], system: str | None) -> None:
    assert planned_targets(experiment(target, *actions))["victim"].os == system


def mixed() -> ClusterView:
    """Two Linux workers and four with Windows."""
    systems = {"a": "linux", "b": "linux", "c": "windows", "d": "windows", "e": "windows", "f": "windows"}
    nodes = {
        name: Node(
            NodeMetadata(name=name, labels={}),
            None,
            NodeStatus(conditions=[Condition("Ready", "True")], node_info=NodeInfo(operating_system=system)),
        )
        for name, system in systems.items()
    }
    return ClusterView("uid", nodes)


@pytest.mark.parametrize("seed", range(8))
def test_nodes_of_a_mixed_cluster(seed: int) -> None:
    targets = planned_targets(experiment({"role": "worker", "runs": "workload"}, "poweroff"))
    selected = select_nodes(targets, mixed(), INVENTORY, seed)
    assert set(selected["victim"]) <= {"a", "b"}
    assert select_workload_nodes(targets, selected, mixed(), INVENTORY, seed) == (), "no other node runs its images"


@pytest.mark.parametrize("seed", range(8))
def test_pods_of_a_workload_stay_on_one_system(seed: int) -> None:
    targets = {"victim": TargetSpec.model_validate({"os": "windows", "runs": "workload"})}
    selected = select_nodes(targets, mixed(), INVENTORY, seed)
    nodes = select_workload_nodes(targets, selected, mixed(), INVENTORY, seed)
    assert len(nodes) == 3
    assert set(nodes) <= set("cdef")
