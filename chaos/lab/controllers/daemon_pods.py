"""What a DaemonSet knows of its nodes and pods, and which pods a roll-out replaces.

Eligibility of nodes for the pods of a DaemonSet, evaluated for every node at every sync.
Pods of one DaemonSet by node, counted with every change: a sync evaluates only nodes with changes.
Rolling update of daemon pods: pure. pkg/controller/daemon/update.go rollingUpdate, without surge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import ceil
from typing import NamedTuple

from chaos.lab.apiserver.index import Key
from chaos.lab.apiserver.pods import DEFAULT, untolerated
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.workload import revision_of
from chaos.lab.objects import (
    Object,
    is_deleting,
    matches_node,
    name_of,
    named_nodes,
    namespace_of,
    node_of,
    taints_of,
)
from chaos.lab.rules import TolerationRules


class Eligibility(NamedTuple):
    """Whether a node should run a daemon pod, and whether it should continue running one. NodeShouldRunDaemonPod."""

    should_run: bool
    should_continue_running: bool


class EligibilityCache:
    """Cache for one prototype, valid until a node's labels or spec are written."""

    def __init__(self, prototype: Object, rules: TolerationRules = DEFAULT) -> None:
        self.prototype, self._rules = prototype, rules
        self._nodes: dict[str, tuple[Object, Object | None, Eligibility]] = {}

    def of(self, node: Object) -> Eligibility:
        spec, labels = node["spec"], node["metadata"].get("labels")
        known = self._nodes.get(name_of(node))
        if known is None or known[0] is not spec or known[1] is not labels:
            known = self._nodes[name_of(node)] = (spec, labels, self._evaluate(node))
        return known[2]

    def _evaluate(self, node: Object) -> Eligibility:
        if not matches_node(self.prototype, node):
            return Eligibility(should_run=False, should_continue_running=False)
        taints = taints_of(node)
        return Eligibility(
            should_run=not untolerated(self.prototype, taints, ("NoSchedule", "NoExecute"), self._rules),
            should_continue_running=not untolerated(self.prototype, taints, ("NoExecute",), self._rules),
        )


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


def max_unavailable(owner: Object, desired: int) -> int:
    """Number of pods for maxUnavailable of ``desired`` pods; percentages round up."""
    value: int | str = owner["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
    return value if isinstance(value, int) else ceil(int(value.removesuffix("%")) * desired / 100)


def pods_to_replace(
    nodes: Iterable[list[Object]], revision: str, limit: int, is_available: Callable[[Object], bool]
) -> list[Object]:
    """Pods to delete: old unavailable ones, and other old ones up to ``limit`` unavailable nodes."""
    unavailable, unhealthy, candidates = 0, [], []
    for pods in nodes:
        active = [pod for pod in pods if not is_deleting(pod)]
        if len(active) != 1:
            unavailable += 1  # the sync of the node creates or deletes pods
        elif revision_of(active[0]) == revision:
            unavailable += not is_available(active[0])
        elif not is_available(active[0]):
            unhealthy.append(active[0])
        elif unavailable < limit:
            candidates.append(active[0])
    return [*unhealthy, *candidates[: max(0, limit - unavailable)]]
