"""Which nodes are to have a pod of a DaemonSet, and which may keep one: asked of every node at every sync."""

from __future__ import annotations

from typing import NamedTuple

from chaos.lab.controllers.scheduling import matches_node
from chaos.lab.objects import Object, name_of, taints_of, untolerated


class Fit(NamedTuple):
    """``runs``: the node is to have a pod; ``stays``: one that it has is left there. daemon_controller.go
    NodeShouldRunDaemonPod."""

    runs: bool
    stays: bool


class Fits:
    """Of one prototype; kept until a node's labels or spec are written anew."""

    def __init__(self, prototype: Object) -> None:
        self.prototype = prototype
        self._nodes: dict[str, tuple[Object, Object | None, Fit]] = {}

    def of(self, node: Object) -> Fit:
        spec, labels = node["spec"], node["metadata"].get("labels")
        known = self._nodes.get(name_of(node))
        if known is None or known[0] is not spec or known[1] is not labels:
            known = self._nodes[name_of(node)] = (spec, labels, self._judge(node))
        return known[2]

    def _judge(self, node: Object) -> Fit:
        if not matches_node(self.prototype, node):
            return Fit(runs=False, stays=False)
        taints = taints_of(node)
        return Fit(
            runs=not untolerated(self.prototype, taints, ("NoSchedule", "NoExecute")),
            stays=not untolerated(self.prototype, taints, ("NoExecute",)),
        )
