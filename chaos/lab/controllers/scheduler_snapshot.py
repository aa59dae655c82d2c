"""The scheduler's snapshot of nodes and pods, updated with every change. kube-scheduler's cache and snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from math import floor
from typing import Protocol

import msgspec

from chaos.lab.controllers.scheduler_affinity import PodAffinity, TermIndex
from chaos.lab.objects import (
    UNSCHEDULABLE,
    Object,
    condition_status,
    is_deleting,
    labels_of,
    matches_node,
    name_of,
    namespace_of,
    node_of,
    parse_quantity,
    requests_of,
    selector_matches,
    taints_of,
)
from chaos.lab.rules import Rules, SchedulerRules

Key = tuple[str, str]  # namespace, name
_Term = tuple[str, tuple[str, str] | None]  # namespace, one of the labels
_MAX_CACHED = 512  # domain counts in the cache


_DEFAULT_RULES = SchedulerRules()
KUBERNETES_PREFIX = "kubernetes.io/"  # Kubernetes' own taints
_AMPLE = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}


def as_seen(node: Object, rules: SchedulerRules) -> Object:
    """The node as the scheduler takes it to be: itself, by the default rules."""
    if rules is _DEFAULT_RULES or rules == _DEFAULT_RULES:
        return node
    taints = [
        {**item, "key": f"untolerable/{item['key']}"} if item["key"] in rules.untolerable_taints else item
        for item in taints_of(node)
        if item["key"] not in rules.ignored_taints
        and (item["effect"] not in rules.ignored_effects or KUBERNETES_PREFIX in item["key"])
    ]
    present = [type_ for type_ in sorted(rules.heeded_conditions) if condition_status(node, type_) == "True"]
    taints += [{"key": f"condition/{type_}", "effect": "NoSchedule"} for type_ in present]
    spec = {**node["spec"], "taints": taints}
    if UNSCHEDULABLE in rules.ignored_taints:
        spec.pop("unschedulable", None)
    allocatable = node["status"].get("allocatable")
    if allocatable:
        factor = Fraction(rules.overcommit)
        amounts = {key: str(floor(parse_quantity(allocatable[key]) * factor)) for key in ("cpu", "memory")}
        allocatable = {**allocatable, **(amounts if factor != 1 else {})}
    elif rules.fits_without_capacity:
        allocatable = _AMPLE
    return {**node, "spec": spec, "status": {**node["status"], "allocatable": allocatable}}


class SnapshotListener(Protocol):
    """A cache that depends on a snapshot."""

    def on_node_change(self, name: str) -> None:
        """Taints, cordon or allocatable resources of the node have changed."""

    def on_load_change(self, name: str) -> None:
        """The pods on the node have changed."""

    def on_topology_change(self) -> None:
        """The set of nodes, or the labels of a node, have changed."""


class Snapshot:
    """Nodes and their non-terminal pods, filtered as in the scheduler's informer.

    ``pod_counts`` by node; ``requested`` amounts by node and resource. ``rules``: those of the filters and scores.
    """

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.nodes: dict[str, Object] = {}
        self.pod_counts: Counter[str] = Counter()
        self.requested: Counter[tuple[str, str]] = Counter()
        self.listeners: list[SnapshotListener] = []
        self.terms = TermIndex()
        self._pods: dict[Key, tuple[Object, dict[str, int]]] = {}
        self._pods_by_node: defaultdict[str, set[Key]] = defaultdict(set)
        self._domains: dict[bytes, _DomainCounts] = {}
        self._by_term: defaultdict[_Term, list[_DomainCounts]] = defaultdict(list)
        self._keys_by_term: defaultdict[_Term, set[Key]] = defaultdict(set)  # of pods with this label

    def put_node(self, node: Object) -> None:
        """Add or replace a node."""
        name = name_of(node)
        before = self.nodes.get(name)
        self.nodes[name] = node
        if before is None or labels_of(before) != labels_of(node):
            if before is None:
                self.nodes = dict(sorted(self.nodes.items()))
            self._clear_caches()
        elif _scheduling_fields(before) != _scheduling_fields(node):
            for listener in self.listeners:
                listener.on_node_change(name)

    def drop_node(self, name: str) -> None:
        """Remove a node."""
        if self.nodes.pop(name, None) is not None:
            self._clear_caches()

    def put(self, pod: Object) -> None:
        """Add or replace a pod that is bound to a node."""
        key, node = (namespace_of(pod), name_of(pod)), node_of(pod)
        known = self._pods.get(key)
        if known is not None and _is_equivalent(known[0], pod):
            self._pods[key] = (pod, known[1])
            return
        self.drop(key)
        requests = requests_of(pod)
        self._pods[key] = (pod, requests)
        self._pods_by_node[node].add(key)
        self._adjust(pod, requests, 1)

    def drop(self, key: Key) -> None:
        """Remove a pod."""
        known = self._pods.pop(key, None)
        if known is not None:
            self._pods_by_node[node_of(known[0])].discard(key)
            self._adjust(*known, -1)

    def pods_on(self, node: str) -> list[Object]:
        """Pods on the node, by key."""
        return [self._pods[key][0] for key in sorted(self._pods_by_node[node])]

    def affinity(self, pod: Object) -> PodAffinity:
        """What affinity between pods means for the nodes of a pod."""
        return PodAffinity(pod, self.terms, self.nodes, lambda: (known for known, _ in self._pods.values()))

    def domains(self, pod: Object, constraint: Object) -> dict[str, int]:
        """Number of pods that match a topologySpreadConstraint of the pod, by domain.

        Tainted nodes count (nodeTaintsPolicy Ignore), terminating pods do not.
        """
        spec, selector = pod["spec"], constraint.get("labelSelector")
        node_filters = [spec.get("nodeSelector"), spec.get("affinity")]
        key = msgspec.json.encode([namespace_of(pod), constraint["topologyKey"], selector, node_filters])
        if key not in self._domains:
            if len(self._domains) >= _MAX_CACHED:
                self._domains.clear()
                self._by_term.clear()
            counts = self._domains[key] = _DomainCounts(pod, constraint, self.nodes)
            self._by_term[counts.term].append(counts)
            for other in self._keys_by_term.get(counts.term, ()) if counts.term[1] else self._pods:
                counts.adjust(self._pods[other][0], 1)
        return self._domains[key].counts

    def _adjust(self, pod: Object, requests: dict[str, int], by: int) -> None:
        node = node_of(pod)
        self.pod_counts[node] += by
        for resource, amount in requests.items():
            self.requested[node, resource] += by * amount
        self.terms.adjust(pod, by)
        namespace = namespace_of(pod)
        for label in (None, *labels_of(pod).items()):
            for domains in self._by_term.get((namespace, label), ()):
                domains.adjust(pod, by)
            if label is not None:
                self._index((namespace, label), (namespace, name_of(pod)), by)
        for listener in self.listeners:
            listener.on_load_change(node)

    def _index(self, term: _Term, key: Key, by: int) -> None:
        keys = self._keys_by_term[term]
        if by > 0:
            keys.add(key)
        else:
            keys.discard(key)
            if not keys:
                del self._keys_by_term[term]

    def _clear_caches(self) -> None:
        self._domains.clear()
        self._by_term.clear()
        for listener in self.listeners:
            listener.on_topology_change()


class _DomainCounts:
    """Number of matching pods by domain, for pods of one kind and one constraint.

    ``term``: namespace and one label that every matching pod has.
    """

    def __init__(self, pod: Object, constraint: Object, nodes: dict[str, Object]) -> None:
        key = constraint["topologyKey"]
        self._namespace, self._selector = namespace_of(pod), constraint.get("labelSelector")
        labels = (self._selector or {}).get("matchLabels") or {}
        self.term: _Term = (self._namespace, next(iter(labels.items()), None))
        self._domain_by_node = {
            name: labels_of(node)[key]
            for name, node in nodes.items()
            if key in labels_of(node) and matches_node(pod, node)
        }
        self.counts = dict.fromkeys(self._domain_by_node.values(), 0)

    def adjust(self, pod: Object, by: int) -> None:
        if namespace_of(pod) != self._namespace or is_deleting(pod):
            return
        domain = self._domain_by_node.get(node_of(pod))
        if domain is not None and selector_matches(self._selector, labels_of(pod)):
            self.counts[domain] += by


def _is_equivalent(before: Object, after: Object) -> bool:
    """Whether both versions of a pod are the same to the scheduler."""
    return (
        is_deleting(before) == is_deleting(after)
        and (before["spec"] is after["spec"] or before["spec"] == after["spec"])
        and labels_of(before) == labels_of(after)
    )


def _scheduling_fields(node: Object) -> tuple[object, ...]:
    return taints_of(node), node["spec"].get("unschedulable"), node["status"].get("allocatable")
