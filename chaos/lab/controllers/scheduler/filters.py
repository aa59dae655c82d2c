"""The scheduler's filters and scores: pure. Texts as kube-scheduler writes them. Facts section 12."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import TYPE_CHECKING

from chaos.lab.objects.accessors import (
    UNSCHEDULABLE,
    Object,
    expression_matches,
    labels_of,
    name_of,
    selector_matches,
    taints_of,
    tolerates,
    untolerated,
)
from chaos.lab.objects.quantity import parse_quantity

if TYPE_CHECKING:
    from chaos.lab.controllers.scheduler.snapshot import Snapshot

_UNSCHEDULABLE = "node(s) were unschedulable"
_TAINTS = "node(s) had untolerated taint(s)"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_SPREAD = "node(s) didn't match pod topology spread constraints"
_FULL = "Too many pods"
UNRESOLVABLE = (_UNSCHEDULABLE, _TAINTS, _AFFINITY)  # by preemption
_RESOURCES = ("cpu", "memory")
_UNITS = {"cpu": 1000, "memory": 1}  # in one of the quantity


def feasible_nodes(pod: Object, nodes: Iterable[Object], snapshot: Snapshot) -> tuple[list[Object], Counter[str]]:
    """Those of the nodes that the pod may go to, and how many were refused for which reason."""
    refused: Counter[str] = Counter()
    found = []
    for node in nodes:
        reason = refusal(pod, node, snapshot)
        if reason:
            refused[reason] += 1
        else:
            found.append(node)
    return found, refused


def score(pod: Object, node: Object, snapshot: Snapshot) -> tuple[int, int, int]:
    """Lower is better: PreferNoSchedule taints, matching pods in the node's domains, pods on the node."""
    spread = Spread(pod, snapshot).count_matching(domains_of(pod, node))
    return count_intolerable_taints(pod, node), spread, snapshot.pod_counts[name_of(node)]


def count_intolerable_taints(pod: Object, node: Object) -> int:
    """How many PreferNoSchedule taints the pod does not tolerate."""
    return len(untolerated(pod, taints_of(node), ("PreferNoSchedule",)))


def fit_error_message(total: int, refused: Counter[str]) -> str:
    """The text of FailedScheduling and of PodScheduled=False."""
    head = f"0/{total} nodes are available"
    if not refused:
        return f"{head}."
    return f"{head}: " + ", ".join(sorted(f"{number} {reason}" for reason, number in refused.items())) + "."


def refusal(pod: Object, node: Object, snapshot: Snapshot) -> str:
    """Why the pod may not go to the node, empty if it may."""
    if why := node_refusal(pod, node) or resource_refusal(requests_of(pod), node, snapshot):
        return why
    return "" if Spread(pod, snapshot).allows(domains_of(pod, node)) else _SPREAD


def node_refusal(pod: Object, node: Object) -> str:
    """Why the node is none for such pods, whatever else runs on it."""
    unschedulable = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not any(
        tolerates(item, unschedulable) for item in pod["spec"].get("tolerations") or []
    ):
        return _UNSCHEDULABLE
    if untolerated(pod, taints_of(node), ("NoSchedule", "NoExecute")):
        return _TAINTS
    return "" if matches_node(pod, node) else _AFFINITY


def resource_refusal(requests: dict[str, int], node: Object, snapshot: Snapshot) -> str:
    """Why the node has no room left, empty if it has."""
    name, allocatable = name_of(node), _allocatable(node)
    if snapshot.pod_counts[name] >= int(allocatable["pods"]):
        return _FULL
    for resource, amount in requests.items():
        if amount and snapshot.requested[name, resource] + amount > _resource_amount(
            allocatable[resource], _UNITS[resource]
        ):
            return f"Insufficient {resource}"
    return ""


@lru_cache(maxsize=4096, typed=True)
def _resource_amount(quantity: str | int | float, units: int) -> int:
    return floor(parse_quantity(quantity) * units)


def named_nodes(pod: Object) -> set[str] | None:
    """The only nodes that the pod's affinity can match, by name; None if it names none. As NodeAffinity's PreFilter."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return None
    names: set[str] = set()
    for term in required["nodeSelectorTerms"]:
        fields = [item["values"] for item in term.get("matchFields") or [] if _names(item)]
        if not fields:
            return None
        names.update(fields[0])
    return names


def _names(field: Object) -> bool:
    return bool(field["key"] == "metadata.name" and field["operator"] == "In")


def requests_of(pod: Object) -> dict[str, int]:
    """What the pod's containers ask for: milli-CPUs, and bytes of memory."""
    cpus, memories = [], []
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        cpus.append(str(wanted.get("cpu", 0)))
        memories.append(str(wanted.get("memory", 0)))
    return {"cpu": _total(tuple(cpus), 1000), "memory": _total(tuple(memories), 1)}


@lru_cache(maxsize=4096)
def _total(quantities: tuple[str, ...], factor: int) -> int:
    return ceil(sum(map(parse_quantity, quantities), Fraction(0)) * factor)


def _allocatable(node: Object) -> Object:
    """A node whose kubelet never posted its status has nothing."""
    found: Object = node["status"].get("allocatable") or dict.fromkeys(("pods", *_RESOURCES), 0)
    return found


def matches_node(pod: Object, node: Object) -> bool:
    """nodeSelector and required node affinity: any term, all of its expressions and fields."""
    labels = labels_of(node)
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    fields = {"metadata.name": name_of(node)}
    return any(
        all(expression_matches(item, labels) for item in term.get("matchExpressions") or [])
        and all(expression_matches(item, fields) for item in term.get("matchFields") or [])
        for term in required["nodeSelectorTerms"]
    )


def domains_of(pod: Object, node: Object) -> tuple[str | None, ...]:
    """The node's domain for each of the pod's topologySpreadConstraints, None where it has no such label."""
    constraints = pod["spec"].get("topologySpreadConstraints") or []
    return tuple(labels_of(node).get(item["topologyKey"]) for item in constraints)


class Spread:
    """The pod's topologySpreadConstraints against what runs where."""

    def __init__(self, pod: Object, snapshot: Snapshot) -> None:
        self._terms = [
            (item, snapshot.domains(pod, item), selector_matches(item.get("labelSelector"), labels_of(pod)))
            for item in pod["spec"].get("topologySpreadConstraints") or []
        ]
        self._min_matches = [min(domains.values(), default=0) for _, domains, _ in self._terms]

    def allows(self, places: tuple[str | None, ...]) -> bool:
        """Whether a node in these domains keeps every maxSkew that must be kept."""
        for (item, domains, itself), least, place in zip(self._terms, self._min_matches, places, strict=True):
            if item.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
                continue
            if place is None or domains[place] + itself - least > item["maxSkew"]:
                return False
        return True

    def count_matching(self, places: tuple[str | None, ...]) -> int:
        """How many matching pods are in these domains."""
        return sum(domains.get(place or "", 0) for (_, domains, _), place in zip(self._terms, places, strict=True))
