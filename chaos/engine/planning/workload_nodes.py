"""Nodes for the pods of the workload, so that each target that asks for it (``runs: workload``) has some.

A workload of three replicas, spread over the nodes, leaves most nodes of a larger cluster without a pod. Which node
gets one is known only when the workload exists, but targets are planned, checked and confirmed before. So the plan
fixes both: its pods are confined to the targets and to as many other nodes as make three.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from chaos.core.cluster_view import ClusterView
from chaos.core.experiment import TargetSpec
from chaos.core.inventory import Inventory
from chaos.core.kube import Node, is_ready, operating_system

SPREAD = 3  # replicas of the bundled workloads


def select_workload_nodes(
    specs: Mapping[str, TargetSpec],
    selected: Mapping[str, tuple[str, ...]],
    view: ClusterView,
    inventory: Inventory,
    seed: int,
) -> tuple[str, ...]:
    """Names of the nodes, sorted; () for no restriction: no target asks for it, or there are no more nodes anyway."""
    if all(spec.runs is None for spec in specs.values()):
        return ()
    targets = sorted({node for nodes in selected.values() for node in nodes})
    systems = {operating_system(view.nodes[node]) for node in targets}  # images of one run on no other
    others = sorted(
        name
        for name, node in view.nodes.items()
        if name not in targets and is_schedulable(node) and view.role(name) == "worker"
        if name not in inventory.protected.nodes and operating_system(node) in systems
    )
    wanted = max(0, SPREAD - len(targets))
    if len(others) <= wanted:
        return ()
    return tuple(sorted([*targets, *random.Random(seed).sample(others, wanted)]))  # noqa: S311 - reproducible


def is_schedulable(node: Node) -> bool:
    """Whether a pod without tolerations can be bound to the node."""
    if not is_ready(node) or (node.spec and node.spec.unschedulable):
        return False
    taints = (node.spec.taints if node.spec else None) or ()
    return all(taint.effect not in ("NoSchedule", "NoExecute") for taint in taints)
