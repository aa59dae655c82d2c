"""The scheduler's filters and scores: pure. Texts as kube-scheduler writes them. Facts section 12."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil

from chaos.lab.objects import (
    UNSCHEDULABLE,
    Object,
    expression_matches,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    selector_matches,
    taints_of,
    tolerates,
    untolerated,
)
from chaos.lab.quantity import parse_quantity

_UNSCHEDULABLE = "node(s) were unschedulable"
_TAINTS = "node(s) had untolerated taint(s)"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_SPREAD = "node(s) didn't match pod topology spread constraints"
_FULL = "Too many pods"
UNRESOLVABLE = (_UNSCHEDULABLE, _TAINTS, _AFFINITY)  # by preemption
_RESOURCES = ("cpu", "memory")


class Snapshot:
    """Nodes, and the pods that run or will run on them: terminal ones are out, as the scheduler's informer filters."""

    def __init__(self, nodes: list[Object], pods: list[Object]) -> None:
        self.nodes = nodes
        self.pods = pods
        self.count = Counter(node_of(pod) for pod in pods)
        self.requested: Counter[tuple[str, str]] = Counter()
        for pod in pods:
            self._add(pod)

    def _add(self, pod: Object) -> None:
        for resource, amount in requests_of(pod).items():
            self.requested[node_of(pod), resource] += amount

    def assume(self, pod: Object) -> None:
        """Take a pod that was just bound into account."""
        self.pods.append(pod)
        self.count[node_of(pod)] += 1
        self._add(pod)


def feasible(pod: Object, snapshot: Snapshot) -> tuple[list[Object], Counter[str]]:
    """The nodes that the pod may go to, and how many were refused for which reason."""
    refused: Counter[str] = Counter()
    fitting = []
    for node in snapshot.nodes:
        reason = refusal(pod, node, snapshot)
        if reason:
            refused[reason] += 1
        else:
            fitting.append(node)
    return fitting, refused


def score(pod: Object, node: Object, snapshot: Snapshot) -> tuple[int, int, int]:
    """Lower is better: PreferNoSchedule taints, matching pods in the node's domains, pods on the node."""
    disliked = len(untolerated(pod, taints_of(node), ("PreferNoSchedule",)))
    spread = 0
    for constraint in pod["spec"].get("topologySpreadConstraints") or []:
        domains = _domains(pod, constraint, snapshot)
        spread += domains.get(labels_of(node).get(constraint["topologyKey"], ""), 0)
    return disliked, spread, snapshot.count[name_of(node)]


def message(total: int, refused: Counter[str]) -> str:
    """The text of FailedScheduling and of PodScheduled=False."""
    head = f"0/{total} nodes are available"
    if not refused:
        return f"{head}."
    return f"{head}: " + ", ".join(sorted(f"{number} {reason}" for reason, number in refused.items())) + "."


def refusal(pod: Object, node: Object, snapshot: Snapshot) -> str:
    """Why the pod may not go to the node, empty if it may."""
    unschedulable = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not any(
        tolerates(item, unschedulable) for item in pod["spec"].get("tolerations") or []
    ):
        return _UNSCHEDULABLE
    if untolerated(pod, taints_of(node), ("NoSchedule", "NoExecute")):
        return _TAINTS
    if not matches_node(pod, node):
        return _AFFINITY
    if snapshot.count[name_of(node)] >= int(_allocatable(node)["pods"]):
        return _FULL
    if short := _shortage(pod, node, snapshot):
        return f"Insufficient {short}"
    return "" if _spread_allows(pod, node, snapshot) else _SPREAD


def requests_of(pod: Object) -> dict[str, int]:
    """What the pod's containers ask for: milli-CPUs, and bytes of memory."""
    total = dict.fromkeys(_RESOURCES, Fraction(0))
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for resource in _RESOURCES:
            total[resource] += parse_quantity(wanted.get(resource, 0))
    return {"cpu": ceil(total["cpu"] * 1000), "memory": ceil(total["memory"])}


def _shortage(pod: Object, node: Object, snapshot: Snapshot) -> str:
    """The first resource of which the node has too little left."""
    allocatable = _allocatable(node)
    room = {"cpu": parse_quantity(allocatable["cpu"]) * 1000, "memory": parse_quantity(allocatable["memory"])}
    for resource, amount in requests_of(pod).items():
        if amount and snapshot.requested[name_of(node), resource] + amount > room[resource]:
            return resource
    return ""


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


def _spread_allows(pod: Object, node: Object, snapshot: Snapshot) -> bool:
    for constraint in pod["spec"].get("topologySpreadConstraints") or []:
        if constraint.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
            continue
        domain = labels_of(node).get(constraint["topologyKey"])
        if domain is None:
            return False
        domains = _domains(pod, constraint, snapshot)
        itself = selector_matches(constraint.get("labelSelector"), labels_of(pod))
        if domains[domain] + itself - min(domains.values()) > constraint["maxSkew"]:
            return False
    return True


def _domains(pod: Object, constraint: Object, snapshot: Snapshot) -> dict[str, int]:
    """Matching pods by domain. Tainted nodes count (nodeTaintsPolicy Ignore), terminating pods do not."""
    key, selector = constraint["topologyKey"], constraint.get("labelSelector")
    domain_of = {
        name_of(node): labels_of(node)[key]
        for node in snapshot.nodes
        if key in labels_of(node) and matches_node(pod, node)
    }
    domains = dict.fromkeys(domain_of.values(), 0)
    for other in snapshot.pods:
        domain = domain_of.get(node_of(other))
        same = namespace_of(other) == namespace_of(pod) and not is_deleting(other)
        if domain is not None and same and selector_matches(selector, labels_of(other)):
            domains[domain] += 1
    return domains
