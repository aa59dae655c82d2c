"""Selection of nodes: the targets of a run, the inventory's limits, and the nodes of the workload."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from chaos.core.cluster_view import ClusterView, zone
from chaos.core.errors import Refused
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory, Limits
from chaos.core.kube import Node, full_name, is_ready, operating_system
from chaos.core.target_spec import TargetPods, TargetSpec

SPREAD = 3  # replicas of the bundled workloads
_MAX_VALUES = 6  # of a label, in a message


def planned_targets(experiment: Experiment) -> dict[str, TargetSpec]:
    """The targets by name. If a target leaves the operating system open, it gets the one for which its steps have
    commands.

    A target that names nodes or an operating system does not change. Steps without commands for it are refused.
    """
    return {name: _with_system(name, spec, experiment) for name, spec in experiment.spec.targets.items()}


def _with_system(name: str, spec: TargetSpec, experiment: Experiment) -> TargetSpec:
    bound = [step.bound for step in experiment.spec.method if step.target == name]
    limited = [step.systems for step in bound if step.action.on_host]
    systems = frozenset.intersection(*limited) if limited else frozenset()
    if spec.os or spec.nodes or len(systems) != 1:
        return spec
    return spec.model_copy(update={"os": next(iter(systems))})


def select_nodes(
    specs: Mapping[str, TargetSpec], view: ClusterView, inventory: Inventory, seed: int, own_node: str = ""
) -> dict[str, tuple[str, ...]]:
    """Select the nodes of each target, by the target's name; no node belongs to two targets.

    ``own_node``: the node on which nodefall runs as a pod. Only its name selects it, and preflight then refuses it.
    Raises Refused if a target matches too few nodes or names a protected one, and if all targets together exceed
    ``limits.maxNodes`` or leave fewer Ready workers than ``limits.minReadyNodes``.
    """
    rng = random.Random(seed)  # noqa: S311 - reproducible on purpose
    selected: dict[str, tuple[str, ...]] = {}
    for name, spec in specs.items():
        used = {node for nodes in selected.values() for node in nodes}
        candidates = _candidates(name, spec, view, inventory, used if spec.nodes else {*used, own_node})
        count = _count(spec, len(candidates))
        if len(candidates) < count:
            raise Refused(
                f"target {name} needs {count} node(s), but only {len(candidates)} match:"
                f" {_describe_shortage(spec, view)}",
                hint="check spec.targets in the experiment, and protected and limits in the inventory",
            )
        selected[name] = tuple(sorted(_sample(rng, spec, candidates, count, view)))
    _check_limits([node for nodes in selected.values() for node in nodes], view, inventory)
    return selected


def _sample(rng: random.Random, spec: TargetSpec, candidates: list[str], count: int, view: ClusterView) -> list[str]:
    """``count`` of the nodes; with ``spread``, one of each zone in turn."""
    found = rng.sample(candidates, len(candidates) if spec.spread else count)
    if spec.spread:
        seen: Counter[str] = Counter()
        turns = {}
        for node in found:
            seen[where := zone(view.nodes[node])] += 1
            turns[node] = seen[where]
        found.sort(key=turns.__getitem__)
    return found[:count]


def existing_pods(spec: TargetSpec, node: str, view: ClusterView) -> tuple[str, ...]:
    """The pods (namespace/name, sorted) that a target asks for and that already run on the node."""
    if spec.runs is None or spec.runs.is_own:
        return ()
    return tuple(sorted(full_name(pod.metadata) for pod in view.pods_on(node) if spec.runs.matches(pod, "")))


def candidates(spec: TargetSpec, view: ClusterView, inventory: Inventory, own_node: str = "") -> list[str]:
    """The sorted names of the nodes that match a target, whether or not they are Ready, without protected nodes and
    our own node.
    """
    return sorted(
        name
        for name, node in view.nodes.items()
        if _matches(node, spec, view) and not is_protected(node, view, inventory) and (spec.nodes or name != own_node)
    )


def _candidates(name: str, spec: TargetSpec, view: ClusterView, inventory: Inventory, used: set[str]) -> list[str]:
    if unknown := sorted(set(spec.except_) - view.nodes.keys()):
        raise Refused(
            f"target {name}: except names {', '.join(unknown)}, which the cluster does not have",
            hint="correct the name, or remove it",
        )
    for node in spec.nodes or ():
        if node not in view.nodes:
            raise Refused(f"target {name} names the node {node}, which does not exist in the cluster")
        if is_protected(view.nodes[node], view, inventory):
            raise Refused(f"target {name} names the node {node}, which the inventory protects")
    return sorted(
        node.metadata.name
        for node in view.nodes.values()
        if _matches(node, spec, view)
        and is_ready(node)
        and not is_protected(node, view, inventory)
        and node.metadata.name not in used
    )


def _matches(node: Node, spec: TargetSpec, view: ClusterView) -> bool:
    labels = _labels(node)
    return (
        (spec.nodes is None or node.metadata.name in spec.nodes)
        and (spec.role is None or view.role(node.metadata.name) == spec.role)
        and (spec.zone is None or zone(node) == spec.zone)
        and (spec.os is None or operating_system(node) == spec.os)
        and (spec.runs is None or _can_run(node, spec, spec.runs, view))
        and node.metadata.name not in spec.except_
        and all(labels.get(key) == value for key, value in (spec.match_labels or {}).items())
        and all(requirement.matches(labels) for requirement in spec.match_expressions)
    )


def _can_run(node: Node, spec: TargetSpec, pods: TargetPods, view: ClusterView) -> bool:
    return is_schedulable(node) if pods.is_own else bool(existing_pods(spec, node.metadata.name, view))


def is_protected(node: Node, view: ClusterView, inventory: Inventory) -> bool:
    """Whether the inventory protects a node."""
    protected = inventory.protected
    return view.role(node.metadata.name) in protected.roles or node.metadata.name in protected.nodes


def _count(spec: TargetSpec, candidates: int) -> int:
    if spec.nodes and spec.count == 1:
        return len(spec.nodes)
    text = str(spec.count)
    return max(1, candidates * int(text[:-1]) // 100) if text.endswith("%") else int(text)


def _describe_shortage(spec: TargetSpec, view: ClusterView) -> str:
    if spec.runs and not spec.runs.is_own and not any(existing_pods(spec, node, view) for node in view.nodes):
        return f"there are no {spec.runs} on any node"
    matching = [node for node in view.nodes.values() if _matches(node, spec, view)]
    if absent := "" if matching else _describe_absence(spec, view):
        return f"0 of {len(view.nodes)} nodes match it, as none has {absent}"
    not_ready = sum(not is_ready(node) for node in matching)
    return f"{len(matching)} of {len(view.nodes)} nodes match it, {not_ready} of them are not Ready"


def _describe_absence(spec: TargetSpec, view: ClusterView) -> str:
    """What a target asks for and no node has, with what there is; "" if no single part of it is missing."""
    nodes = view.nodes.values()
    parts: list[tuple[str, Callable[[Node], str], str]] = [
        ("zone", zone, spec.zone or ""),
        ("role", lambda node: view.role(node.metadata.name), spec.role or ""),
        ("operating system", operating_system, spec.os or ""),
    ]
    parts += [(f"label {key}", _label(key), value) for key, value in (spec.match_labels or {}).items()]
    for what, of, wanted in parts:
        found = sorted({of(node) for node in nodes} - {""})
        if wanted and wanted not in found:
            known = f"found: {', '.join(found[:_MAX_VALUES])}" if found else "no node has any"
            return f"{what} {wanted} ({known})"
    unmet = (each for each in spec.match_expressions if not any(each.matches(_labels(node)) for node in nodes))
    return next((f"label {each.key}: {each.operator} {', '.join(each.values)}".rstrip() for each in unmet), "")


def _label(key: str) -> Callable[[Node], str]:
    return lambda node: _labels(node).get(key, "")


def _labels(node: Node) -> dict[str, str]:
    return node.metadata.labels or {}


def _check_limits(nodes: list[str], view: ClusterView, inventory: Inventory) -> None:
    limits = inventory.limits
    if len(nodes) > limits.max_nodes:
        raise Refused(
            f"too many target nodes: the experiment affects {len(nodes)}, limits.maxNodes is {limits.max_nodes}",
            hint="raise limits.maxNodes in the inventory if that is intended",
        )
    check_ready_nodes(nodes, view, limits)


def check_ready_nodes(down: Iterable[str], view: ClusterView, limits: Limits) -> None:
    """Raises Refused if fewer Ready workers than ``limits.minReadyNodes``, or no Ready node, remain without ``down``.

    Control planes do not count as workers, because few pods may run there. Without any workers, all nodes count.
    """
    down = set(down)
    has_workers = any(view.role(name) == "worker" for name in view.nodes)
    what = "workers" if has_workers else "nodes"
    remaining = len(set(view.ready_workers() if has_workers else view.ready_nodes()) - down)
    if remaining < limits.min_ready_nodes:
        raise Refused(
            f"too few Ready {what}: {remaining} would stay Ready, limits.minReadyNodes is {limits.min_ready_nodes}",
            hint="select fewer targets, or lower limits.minReadyNodes in the inventory",
        )
    if not set(view.ready_nodes()) - down:
        raise Refused("too few Ready nodes: none would stay Ready", hint="select fewer targets")


def select_workload_nodes(
    specs: Mapping[str, TargetSpec],
    selected: Mapping[str, tuple[str, ...]],
    view: ClusterView,
    inventory: Inventory,
    seed: int,
) -> tuple[str, ...]:
    """Names of the nodes that the workload is confined to, sorted; () for no restriction.

    They are the nodes of the targets that ask for it; if these are too few, nodes of other targets and then others.
    There is no restriction if no target asks for it, or if no other nodes accept such pods anyway.
    """
    targets = sorted({node for nodes in selected.values() for node in nodes})
    own = {name for name, spec in specs.items() if spec.runs and spec.runs.is_own}
    asking = {node for name, nodes in selected.items() if name in own for node in nodes}
    if not asking:
        return ()
    systems = {operating_system(view.nodes[node]) for node in targets}  # images of one run on no other
    usable = sorted(
        name
        for name, node in view.nodes.items()
        if is_schedulable(node) and view.role(name) == "worker"
        if name not in inventory.protected.nodes and operating_system(node) in systems
    )
    rng, confined = random.Random(seed), sorted(asking)  # noqa: S311 - reproducible
    others = [name for name in usable if name not in targets]
    for group in ([name for name in targets if name not in asking], others):
        confined += rng.sample(group, min(len(group), max(0, SPREAD - len(confined))))
    return () if set(usable) <= set(confined) else tuple(sorted(confined))


def is_schedulable(node: Node) -> bool:
    """Whether a pod without tolerations can be bound to the node."""
    if not is_ready(node) or (node.spec and node.spec.unschedulable):
        return False
    taints = (node.spec.taints if node.spec else None) or ()
    return all(taint.effect not in ("NoSchedule", "NoExecute") for taint in taints)
