"""The nodes for pods that ask for the same, best first, kept from pod to pod: 1,000 nodes are not looked at anew."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from typing import TYPE_CHECKING

from chaos.lab.controllers.scheduling import Spread, disliked, domains_of, no_room, requests_of, unsuitable
from chaos.lab.objects import Object

if TYPE_CHECKING:
    from chaos.lab.controllers.snapshot import Snapshot

_Domains = tuple[str | None, ...]
_Level = tuple[int, int]  # the score without the spread: PreferNoSchedule taints, pods


class Ranking:
    """Nodes with room by their domains and then by level; each list in order of name."""

    def __init__(self, pod: Object, nodes: dict[str, Object]) -> None:
        self._pod, self._requests = pod, requests_of(pod)
        self._stale = set(nodes)
        self._suitable: dict[str, int | None] = {}  # PreferNoSchedule taints; None for a node that is unsuitable
        self._place: dict[str, tuple[_Domains, _Level]] = {}
        self._groups: defaultdict[_Domains, dict[_Level, list[str]]] = defaultdict(dict)

    def node_changed(self, name: str) -> None:
        self._suitable.pop(name, None)
        self._stale.add(name)

    def load_changed(self, name: str) -> None:
        """Pods have come or gone."""
        self._stale.add(name)

    def best(self, pod: Object, snapshot: Snapshot) -> list[str]:
        """The nodes with the best score for a pod of this kind, in order; none if it fits nowhere."""
        for name in self._stale:
            self._renew(name, snapshot)
        self._stale.clear()
        spread, found, least = Spread(pod, snapshot), list[str](), None
        for domains, levels in self._groups.items():
            if not levels or not spread.allows(domains):
                continue
            level = min(levels)
            score = (level[0], spread.matching(domains), level[1])
            if least is None or score < least:
                least, found = score, []
            if score == least:
                found += levels[level]
        return sorted(found) if len(self._groups) > 1 else found

    def _renew(self, name: str, snapshot: Snapshot) -> None:
        node = snapshot.nodes.get(name)
        if name in self._place:
            self._leave(name)
        if node is None:
            return
        if name not in self._suitable:
            self._suitable[name] = None if unsuitable(self._pod, node) else disliked(self._pod, node)
        taints = self._suitable[name]
        if taints is not None and not no_room(self._requests, node, snapshot):
            domains, level = domains_of(self._pod, node), (taints, snapshot.count[name])
            self._place[name] = (domains, level)
            insort(self._groups[domains].setdefault(level, []), name)

    def _leave(self, name: str) -> None:
        domains, level = self._place.pop(name)
        names = self._groups[domains][level]
        del names[bisect_left(names, name)]
        if not names:
            del self._groups[domains][level]
