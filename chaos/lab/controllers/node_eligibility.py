"""Eligibility of nodes for the pods of a DaemonSet, evaluated for every node at every sync."""

from __future__ import annotations

from typing import NamedTuple

from chaos.lab.objects.accessors import Object, name_of, taints_of, untolerated
from chaos.lab.objects.scheduling import matches_node


class Eligibility(NamedTuple):
    """Whether a node should run a daemon pod, and whether it should continue running one. NodeShouldRunDaemonPod."""

    should_run: bool
    should_continue_running: bool


class EligibilityCache:
    """Cache for one prototype, valid until a node's labels or spec are written."""

    def __init__(self, prototype: Object) -> None:
        self.prototype = prototype
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
            should_run=not untolerated(self.prototype, taints, ("NoSchedule", "NoExecute")),
            should_continue_running=not untolerated(self.prototype, taints, ("NoExecute",)),
        )
