"""Nodes for equal pods, best first, cached from pod to pod: a pass need not evaluate 1,000 nodes for each pod.
Victims whose removal lets a pod of higher priority fit: pure. kube-scheduler's plugin DefaultPreemption.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict

import msgspec

from chaos.lab.controllers.scheduler_plugins import (
    UNRESOLVABLE,
    Domains,
    Neighbors,
    Score,
    count_intolerable_taints,
    node_refusal,
    order_of,
    refusal,
    resource_refusal,
)
from chaos.lab.controllers.scheduler_snapshot import Key, Snapshot
from chaos.lab.objects import (
    Object,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    requests_of,
    selector_matches,
    uid_of,
)

_Level = tuple[int, int]  # score without the spread: PreferNoSchedule taints, pods
_MAX_CACHED = 512  # rankings in the cache


class RankingCache:
    """Rankings of the nodes of a snapshot, one for all pods whose specs request the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._rankings: dict[bytes, _Ranking] = {}
        snapshot.listeners.append(self)

    def best(self, pod: Object) -> list[str]:
        """Nodes with the best score for the pod, by name; none if no node fits."""
        spec = pod["spec"]
        neighbors = Neighbors(pod, self._snapshot)
        node_filters = [spec.get("tolerations"), spec.get("nodeSelector"), spec.get("affinity")]
        key = msgspec.json.encode([node_filters, requests_of(pod), neighbors.keys])
        if key not in self._rankings:
            if len(self._rankings) >= _MAX_CACHED:
                self._rankings.clear()
            self._rankings[key] = _Ranking(pod, neighbors.keys, self._snapshot.nodes)
        return self._rankings[key].best(neighbors, self._snapshot)

    def on_node_change(self, name: str) -> None:
        for ranking in self._rankings.values():
            ranking.on_node_change(name)

    def on_load_change(self, name: str) -> None:
        for ranking in self._rankings.values():
            ranking.on_load_change(name)

    def on_topology_change(self) -> None:
        self._rankings.clear()


class _Ranking:
    """Feasible nodes by their domains and then by level; each list in order of name."""

    def __init__(self, pod: Object, keys: tuple[str, ...], nodes: dict[str, Object]) -> None:
        self._pod, self._requests, self._keys = pod, requests_of(pod), keys
        self._stale = set(nodes)
        self._taint_counts: dict[str, int | None] = {}  # of PreferNoSchedule; None for a node that cannot fit
        self._positions: dict[str, tuple[Domains, _Level]] = {}
        self._groups: defaultdict[Domains, dict[_Level, list[str]]] = defaultdict(dict)

    def on_node_change(self, name: str) -> None:
        self._taint_counts.pop(name, None)
        self._stale.add(name)

    def on_load_change(self, name: str) -> None:
        self._stale.add(name)

    def best(self, neighbors: Neighbors, snapshot: Snapshot) -> list[str]:
        """Nodes with the best score for a pod of this kind, by name; none if no node fits."""
        for name in self._stale:
            self._refresh(name, snapshot)
        self._stale.clear()
        found: list[tuple[Score, list[str]]] = []
        for domains, levels in self._groups.items():
            if levels and not neighbors.refusal(domains):
                level = min(levels)
                spread, affinity = neighbors.score(domains)
                found.append((Score(level[0], spread, affinity, level[1]), levels[level]))
        order = order_of([score for score, _ in found])
        first = min((order(score) for score, _ in found), default=None)
        best = [name for score, names in found if order(score) == first for name in names]
        return sorted(best) if len(self._groups) > 1 else best

    def _refresh(self, name: str, snapshot: Snapshot) -> None:
        node = snapshot.nodes.get(name)
        if name in self._positions:
            self._remove(name)
        if node is None:
            return
        if name not in self._taint_counts:
            rules = snapshot.rules
            fits = not node_refusal(self._pod, node, rules)
            self._taint_counts[name] = count_intolerable_taints(self._pod, node, rules) if fits else None
        taints = self._taint_counts[name]
        if taints is not None and not resource_refusal(self._requests, node, snapshot):
            level = (taints, snapshot.pod_counts[name])
            domains = tuple(labels_of(node).get(key) for key in self._keys)
            self._positions[name] = (domains, level)
            insort(self._groups[domains].setdefault(level, []), name)

    def _remove(self, name: str) -> None:
        domains, level = self._positions.pop(name)
        names = self._groups[domains][level]
        del names[bisect_left(names, name)]
        if not names:
            del self._groups[domains][level]


Rank = tuple[int, int, int, int, str]


def select_candidate(pod: Object, snapshot: Snapshot, budgets: list[Object]) -> tuple[str, list[Object]] | None:
    """Node and victims of the best preemption; None if none helps, or if one is in progress."""
    if pod["spec"].get("preemptionPolicy") == "Never" or _has_terminating_victims(pod, snapshot):
        return None
    best: tuple[Rank, str, list[Object]] | None = None
    for node in snapshot.nodes.values():
        if refusal(pod, node, snapshot) in UNRESOLVABLE:
            continue
        victims = _select_victims(pod, node, snapshot, budgets)
        if victims:
            rank = _rank(victims, budgets, name_of(node))
            if best is None or rank < best[0]:
                best = rank, name_of(node), victims
    return None if best is None else (best[1], best[2])


def _has_terminating_victims(pod: Object, snapshot: Snapshot) -> bool:
    """Whether pods of lower priority are terminating on the pod's nominated node."""
    nominated = pod.get("status", {}).get("nominatedNodeName")
    return nominated is not None and any(
        is_deleting(other) and _priority(other) < _priority(pod) for other in snapshot.pods_on(nominated)
    )


def _select_victims(pod: Object, node: Object, snapshot: Snapshot, budgets: list[Object]) -> list[Object]:
    """Pods of lower priority, without those that can be spared: pods that budgets protect first, then by priority."""
    limit = _priority(pod) + snapshot.rules.scheduler.preempts_equal_priority
    lower = [other for other in snapshot.pods_on(name_of(node)) if _priority(other) < limit]
    if not lower:
        return []
    for other in lower:
        snapshot.drop(_key(other))
    victims = []
    if not refusal(pod, node, snapshot):
        protected = {uid_of(other) for other in violations(lower, budgets)}
        rank = {_key(other): (uid_of(other) not in protected, -_priority(other), _start_time(other)) for other in lower}
        for other in sorted(lower, key=lambda other: (rank[_key(other)], name_of(other))):
            snapshot.put(other)
            if refusal(pod, node, snapshot):
                snapshot.drop(_key(other))
                victims.append(other)
    for other in lower:
        snapshot.put(other)
    return victims


def violations(pods: list[Object], budgets: list[Object]) -> list[Object]:
    """Pods whose removal, one after the other, violates a budget."""
    allowed = {uid_of(budget): budget["status"]["disruptionsAllowed"] for budget in budgets}
    violating = []
    for pod in pods:
        matching = [
            budget
            for budget in budgets
            if namespace_of(budget) == namespace_of(pod)
            and selector_matches(budget["spec"].get("selector"), labels_of(pod))
        ]
        if any(allowed[uid_of(budget)] <= 0 for budget in matching):
            violating.append(pod)
        for budget in matching:
            allowed[uid_of(budget)] -= 1
    return violating


def _rank(victims: list[Object], budgets: list[Object], node: str) -> Rank:
    """Order of candidates: fewest budget violations, lowest top priority, lowest sum, fewest victims."""
    priorities = [_priority(victim) for victim in victims]
    return len(violations(victims, budgets)), max(priorities), sum(priorities), len(victims), node


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _start_time(pod: Object) -> str:
    return str(pod.get("status", {}).get("startTime") or "")


def _key(pod: Object) -> Key:
    return namespace_of(pod), name_of(pod)
