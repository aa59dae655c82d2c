"""Scores of the scheduler for nodes that passed its filters: pure. Facts 12."""

from __future__ import annotations

from chaos.lab.controllers.scheduler.snapshot import Snapshot
from chaos.lab.controllers.scheduler.topology_spread import Spread, domains_of
from chaos.lab.objects.accessors import Object, name_of, taints_of, untolerated


def score(pod: Object, node: Object, snapshot: Snapshot) -> tuple[int, int, int]:
    """PreferNoSchedule taints, matching pods in the node's domains, pods on the node. The lowest score is the best."""
    spread = Spread(pod, snapshot).count_matching(domains_of(pod, node))
    return count_intolerable_taints(pod, node), spread, snapshot.pod_counts[name_of(node)]


def count_intolerable_taints(pod: Object, node: Object) -> int:
    """Number of the node's PreferNoSchedule taints that the pod does not tolerate."""
    return len(untolerated(pod, taints_of(node), ("PreferNoSchedule",)))
