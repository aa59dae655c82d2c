"""Filters of the scheduler: pure. Reasons in kube-scheduler's own words. Facts 12.

Scores of the scheduler for nodes that passed its filters: pure. Facts 12.
Topology spread constraints of a pod: pure. kube-scheduler's plugin PodTopologySpread.
The scheduler's plugins VolumeBinding and VolumeRestrictions.
pkg/scheduler/framework/plugins/volumebinding, volumerestrictions. Claims with delayed binding are bound after a node
was selected for their pod, and before the pod is bound to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import NamedTuple

from chaos.lab.apiserver.pods import untolerated
from chaos.lab.apiserver.store import Store
from chaos.lab.apiserver.volumes import (
    SELECTED_NODE,
    claims_used_by,
    lacks_volume,
    unbound_reason,
    with_volume_affinity,
)
from chaos.lab.controllers.scheduler_affinity import AFFINITY
from chaos.lab.controllers.scheduler_snapshot import Snapshot
from chaos.lab.objects import (
    UNSCHEDULABLE,
    Object,
    allocatable_amount,
    allocatable_pods,
    is_terminal,
    labels_of,
    matches_node,
    name_of,
    namespace_of,
    node_of,
    requests_of,
    selector_matches,
    taints_of,
    uid_of,
)
from chaos.lab.rules import Rules

_UNSCHEDULABLE = "node(s) were unschedulable"
_TAINTS = "node(s) had untolerated taint(s)"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_SPREAD = "node(s) didn't match pod topology spread constraints"
_FULL = "Too many pods"
UNRESOLVABLE = (_UNSCHEDULABLE, _TAINTS, _AFFINITY, AFFINITY)  # by preemption


def feasible_nodes(pod: Object, nodes: Iterable[Object], snapshot: Snapshot) -> tuple[list[Object], Counter[str]]:
    """Nodes that pass all filters, and the number of the other nodes by reason."""
    rejected: Counter[str] = Counter()
    feasible, neighbors = [], Neighbors(pod, snapshot)
    for node in nodes:
        reason = refusal(pod, node, snapshot, neighbors)
        if reason:
            rejected[reason] += 1
        else:
            feasible.append(node)
    return feasible, rejected


def fit_error_message(total: int, rejected: Counter[str]) -> str:
    """Message of the event FailedScheduling and of the condition PodScheduled=False."""
    head = f"0/{total} nodes are available"
    if not rejected:
        return f"{head}."
    return f"{head}: " + ", ".join(sorted(f"{number} {reason}" for reason, number in rejected.items())) + "."


def refusal(pod: Object, node: Object, snapshot: Snapshot, neighbors: Neighbors | None = None) -> str:
    """Reason why the node does not fit the pod, empty if it fits."""
    if reason := node_refusal(pod, node, snapshot.rules) or resource_refusal(requests_of(pod), node, snapshot):
        return reason
    neighbors = neighbors or Neighbors(pod, snapshot)
    return neighbors.refusal(neighbors.domains_of(node))


def node_refusal(pod: Object, node: Object, rules: Rules) -> str:
    """Reason why the node does not fit the pod, whatever runs on the node; empty if there is none."""
    scheduler, tolerations = rules.scheduler, rules.tolerations
    if node["spec"].get("unschedulable") and scheduler.heeds_unschedulable:
        unschedulable = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
        if untolerated(pod, [unschedulable], ("NoSchedule",), tolerations):
            return _UNSCHEDULABLE
    if untolerated(pod, taints_of(node), scheduler.filtered_effects, tolerations):
        return _TAINTS
    return "" if matches_node(pod, node) or not scheduler.heeds_node_selectors else _AFFINITY


def resource_refusal(requests: dict[str, int], node: Object, snapshot: Snapshot) -> str:
    """Reason why the node has not enough free resources, empty if it has."""
    name = name_of(node)
    if snapshot.pod_counts[name] >= allocatable_pods(node):
        return _FULL
    for resource, amount in requests.items() if snapshot.rules.scheduler.heeds_requests else ():
        if amount and snapshot.requested[name, resource] + amount > allocatable_amount(node, resource):
            return f"Insufficient {resource}"
    return ""


class Score(NamedTuple):
    """PreferNoSchedule taints, matching pods in the node's domains, weights of affinities, pods on the node."""

    taints: int
    spread: int
    affinity: int
    pods: int


def score(pod: Object, node: Object, snapshot: Snapshot) -> Score:
    """Score of a node that passed the filters."""
    neighbors = Neighbors(pod, snapshot)
    spread, affinity = neighbors.score(neighbors.domains_of(node))
    taints = count_intolerable_taints(pod, node, snapshot.rules)
    return Score(taints, spread, affinity, snapshot.pod_counts[name_of(node)])


def order_of(scores: Collection[Score]) -> Callable[[Score], tuple[int, int, int]]:
    """Order of nodes with these scores, the best one first.

    If affinities make a difference, they weigh as much as the spread: the plugins' NormalizeScore, both of weight 2.
    """
    affinities, most = [item.affinity for item in scores], max((item.spread for item in scores), default=0)
    least, range_ = min(affinities, default=0), max(affinities, default=0) - min(affinities, default=0)
    if not range_:
        return lambda item: (item.taints, item.spread, item.pods)
    rarest = min(item.spread for item in scores)

    def order(item: Score) -> tuple[int, int, int]:
        spread = 100 * (most + rarest - item.spread) // most if most > 0 else 100
        return item.taints, -(spread + 100 * (item.affinity - least) // range_), item.pods

    return order


def count_intolerable_taints(pod: Object, node: Object, rules: Rules) -> int:
    """Number of the node's PreferNoSchedule taints that the pod does not tolerate."""
    taints = taints_of(node)
    scored = [taint for taint in taints if taint["effect"] in rules.scheduler.scored_effects]
    attracted = len(taints) if rules.scheduler.tolerations_attract else 0
    return len(untolerated(pod, scored, rules.scheduler.scored_effects, rules.tolerations)) - attracted


Domains = tuple[str | None, ...]


class Neighbors:
    """What the pods that run mean for the nodes of one pod: spread constraints, and affinity between pods.

    ``keys``: labels of nodes that make a difference.
    """

    def __init__(self, pod: Object, snapshot: Snapshot) -> None:
        self._spread, self._affinity = Spread(pod, snapshot), snapshot.affinity(pod)
        spread = [item["topologyKey"] for item in pod["spec"].get("topologySpreadConstraints") or []]
        self._split, self.keys = len(spread), (*spread, *self._affinity.keys)

    def domains_of(self, node: Object) -> Domains:
        """Domains of the node by ``keys``; None where the node lacks the label."""
        return tuple(labels_of(node).get(key) for key in self.keys)

    def refusal(self, domains: Domains) -> str:
        """Reason why a node in these domains does not fit, empty if it fits."""
        if not self._spread.allows(domains[: self._split]):
            return _SPREAD
        return self._affinity.refusal(self._labels(domains))

    def score(self, domains: Domains) -> tuple[int, int]:
        """Matching pods in these domains, and the weights of affinities."""
        return self._spread.count_matching(domains[: self._split]), self._affinity.score(self._labels(domains))

    def _labels(self, domains: Domains) -> dict[str, str | None]:
        return dict(zip(self._affinity.keys, domains[self._split :], strict=True))


class Spread:
    """Constraints of one pod, and the number of matching pods in each domain."""

    def __init__(self, pod: Object, snapshot: Snapshot) -> None:
        self._constraints = [
            (item, snapshot.domains(pod, item), selector_matches(item.get("labelSelector"), labels_of(pod)))
            for item in pod["spec"].get("topologySpreadConstraints") or []
        ]
        self._packs = snapshot.rules.scheduler.packs_pods
        self._min_matches = [min(counts.values(), default=0) for _, counts, _ in self._constraints]

    def allows(self, domains: Domains) -> bool:
        """Whether the pod, on a node in these domains, exceeds no maxSkew with whenUnsatisfiable DoNotSchedule."""
        for (item, counts, matches_itself), least, domain in zip(
            self._constraints, self._min_matches, domains, strict=True
        ):
            if self._packs or item.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
                continue
            if domain is None or counts[domain] + matches_itself - least > item["maxSkew"]:
                return False
        return True

    def count_matching(self, domains: Domains) -> int:
        """Number of matching pods in these domains."""
        matching = sum(
            counts.get(domain or "", 0) for (_, counts, _), domain in zip(self._constraints, domains, strict=True)
        )
        return -matching if self._packs else matching


_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"  # binder.go ErrReasonNodeConflict, since #129887
_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"  # ErrReasonBindConflict
_ONE_POD = (  # volume_restrictions.go ErrReasonReadWriteOncePodConflict, since kubernetes/kubernetes#129145
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class VolumeBinding:
    """What the volumes of a pod mean for the choice of its node."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._assumed: dict[str, str] = {}  # node by uid of a pod whose claims are being bound

    def refusal(self, pod: Object, nodes: int) -> str:
        """Reason why no node fits the pod, empty if some may."""
        if reason := unbound_reason(self._store, pod):
            return reason
        for claim in claims_used_by(self._store, pod):
            if claim["spec"]["accessModes"] == ["ReadWriteOncePod"] and self._is_used(claim, pod):
                return f"{nodes} {_ONE_POD}"
            if lacks_volume(self._store, claim):
                return f"{nodes} {_NO_VOLUME}"
        return ""

    def is_binding(self, pod: Object) -> bool:
        """Whether a node is selected for claims of the pod that are not bound yet."""
        claims = claims_used_by(self._store, pod)
        return any(_selected_node(claim) and not claim["spec"].get("volumeName") for claim in claims)

    def with_affinity(self, pod: Object) -> Object:
        """The pod with the node affinity of its volumes."""
        return with_volume_affinity(self._store, pod)

    def assumed_node(self, pod: Object) -> str:
        """Node for which the pod's claims were bound, empty if there is none."""
        return self._assumed.get(uid_of(pod), "")

    def explain(self, rejected: Counter[str], total: int) -> Counter[str]:
        """The reasons of a failure by number of nodes, with those that only the volumes do not fit."""
        left = total - rejected.total()
        return rejected + Counter({_CONFLICT: left})

    def select_node(self, pod: Object, node: str) -> bool:
        """Ask for the volumes of the pod's unbound claims on the node. Whether there are any."""
        unbound = [item for item in claims_used_by(self._store, pod) if not item["spec"].get("volumeName")]
        if not unbound:
            self._assumed.pop(uid_of(pod), None)
            return False
        self._assumed[uid_of(pod)] = node
        for claim in unbound:
            self._store.patch(
                "persistentvolumeclaims",
                namespace_of(claim),
                name_of(claim),
                partial(_annotate, node),
            )
        return True

    def _is_used(self, claim: Object, pod: Object) -> bool:
        others = self._store.pods_using(namespace_of(claim), name_of(claim))
        return any(node_of(other) and not is_terminal(other) and uid_of(other) != uid_of(pod) for other in others)


def _annotate(node: str, claim: Object) -> None:
    claim["metadata"]["annotations"] = {**(claim["metadata"].get("annotations") or {}), SELECTED_NODE: node}


def _selected_node(claim: Object) -> str:
    return str((claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) or "")
