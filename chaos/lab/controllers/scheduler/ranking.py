"""The nodes for pods that ask for the same, best first, kept from pod to pod: 1,000 nodes are not looked at anew."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from typing import TYPE_CHECKING

from chaos.lab.controllers.scheduler.filters import (
    Spread,
    count_intolerable_taints,
    domains_of,
    node_refusal,
    requests_of,
    resource_refusal,
)
from chaos.lab.objects.accessors import Object

if TYPE_CHECKING:
    from chaos.lab.controllers.scheduler.snapshot import Snapshot

_Domains = tuple[str | None, ...]
_Level = tuple[int, int]  # the score without the spread: PreferNoSchedule taints, pods


class Ranking:
    """Nodes with room by their domains and then by level; each list in order of name."""

    def __init__(self, pod: Object, nodes: dict[str, Object]) -> None:
        self._pod, self._requests = pod, requests_of(pod)
        self._stale = set(nodes)
        self._suitable: dict[str, int | None] = {}  # PreferNoSchedule taints; None for a node that is unsuitable
        self._positions: dict[str, tuple[_Domains, _Level]] = {}
        self._groups: defaultdict[_Domains, dict[_Level, list[str]]] = defaultdict(dict)

    def on_node_change(self, name: str) -> None:
        self._suitable.pop(name, None)
        self._stale.add(name)

    def on_load_change(self, name: str) -> None:
        """Pods have come or gone."""
        self._stale.add(name)

    def best(self, pod: Object, snapshot: Snapshot) -> list[str]:
        """The nodes with the best score for a pod of this kind, in order; none if it fits nowhere."""
        for name in self._stale:
            self._refresh(name, snapshot)
        self._stale.clear()
        spread, found, least = Spread(pod, snapshot), list[str](), None
        for domains, levels in self._groups.items():
            if not levels or not spread.allows(domains):
                continue
            level = min(levels)
            score = (level[0], spread.count_matching(domains), level[1])
            if least is None or score < least:
                least, found = score, []
            if score == least:
                found += levels[level]
        return sorted(found) if len(self._groups) > 1 else found

    def _refresh(self, name: str, snapshot: Snapshot) -> None:
        node = snapshot.nodes.get(name)
        if name in self._positions:
            self._remove(name)
        if node is None:
            return
        if name not in self._suitable:
            self._suitable[name] = None if node_refusal(self._pod, node) else count_intolerable_taints(self._pod, node)
        taints = self._suitable[name]
        if taints is not None and not resource_refusal(self._requests, node, snapshot):
            domains, level = domains_of(self._pod, node), (taints, snapshot.pod_counts[name])
            self._positions[name] = (domains, level)
            insort(self._groups[domains].setdefault(level, []), name)

    def _remove(self, name: str) -> None:
        domains, level = self._positions.pop(name)
        names = self._groups[domains][level]
        del names[bisect_left(names, name)]
        if not names:
            del self._groups[domains][level]
