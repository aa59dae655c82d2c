"""Pods of one DaemonSet by node, counted with every change: a sync evaluates only nodes with changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from chaos.lab.apiserver.index import Key
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.node_eligibility import EligibilityCache
from chaos.lab.controllers.revisions import revision_of
from chaos.lab.objects.accessors import Object, name_of, namespace_of, node_of
from chaos.lab.objects.scheduling import named_nodes


class NodeCounts(NamedTuple):
    """Contribution of a node to the status."""

    desired: int = 0
    current: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    misplaced: int = 0


class DaemonPods:
    """``stale``: names of nodes to evaluate. ``total``: sum of all nodes' counts. ``revisions``: pods by revision."""

    def __init__(self, pods: Iterable[Object]) -> None:
        self.eligibility = EligibilityCache({})
        self.generation = 0
        self.stale: set[str] = set()
        self.total = NodeCounts()
        self.revisions: Counter[str] = Counter()
        self._pods: dict[str, dict[Key, Object]] = {}
        self._node_counts: dict[str, NodeCounts] = {}
        for pod in pods:
            self._put(pod)

    def on_change(self, change: Change) -> None:
        """Handle a change of a pod of this DaemonSet."""
        if change.before is not None:
            self._drop(change.before)
        if change.type != "DELETED":
            self._put(change.object)

    def pop_stale(self) -> list[str]:
        """Return the stale nodes in order, and clear them."""
        names = sorted(self.stale)
        self.stale.clear()
        return names

    def pods_on(self, node: str) -> list[Object]:
        """Pods on the node, by name."""
        pods = self._pods.get(node, {})
        return [pods[key] for key in sorted(pods)]

    def by_node(self) -> list[list[Object]]:
        """Pods of each node that has any, in order of nodes."""
        return [self.pods_on(node) for node in sorted(self._pods)]

    def set_counts(self, node: str, counts: NodeCounts) -> None:
        """Set the contribution of a node."""
        before = self._node_counts.get(node, NodeCounts())
        self._node_counts[node] = counts
        self.total = NodeCounts(
            *(total - old + new for total, old, new in zip(self.total, before, counts, strict=True))
        )

    def _put(self, pod: Object) -> None:
        target = _target(pod)
        self._pods.setdefault(target, {})[namespace_of(pod), name_of(pod)] = pod
        self.revisions[revision_of(pod)] += 1
        self.stale.add(target)

    def _drop(self, pod: Object) -> None:
        target, revision = _target(pod), revision_of(pod)
        del self._pods[target][namespace_of(pod), name_of(pod)]
        if not self._pods[target]:
            del self._pods[target]
        self.revisions[revision] -= 1
        if not self.revisions[revision]:
            del self.revisions[revision]
        self.stale.add(target)


def _target(pod: Object) -> str:
    """Name of the node that a daemon pod is bound to or created for."""
    return node_of(pod) or min(named_nodes(pod) or {""})
