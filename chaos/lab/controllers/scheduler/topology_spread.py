"""Topology spread constraints of a pod: pure. kube-scheduler's plugin PodTopologySpread."""

from __future__ import annotations

from chaos.lab.controllers.scheduler.snapshot import Snapshot
from chaos.lab.objects.accessors import Object, labels_of, selector_matches

Domains = tuple[str | None, ...]


def domains_of(pod: Object, node: Object) -> Domains:
    """Domain of the node for each constraint of the pod; None where the node lacks the label."""
    constraints = pod["spec"].get("topologySpreadConstraints") or []
    return tuple(labels_of(node).get(item["topologyKey"]) for item in constraints)


class Spread:
    """Constraints of one pod, and the number of matching pods in each domain."""

    def __init__(self, pod: Object, snapshot: Snapshot) -> None:
        self._constraints = [
            (item, snapshot.domains(pod, item), selector_matches(item.get("labelSelector"), labels_of(pod)))
            for item in pod["spec"].get("topologySpreadConstraints") or []
        ]
        self._min_matches = [min(counts.values(), default=0) for _, counts, _ in self._constraints]

    def allows(self, domains: Domains) -> bool:
        """Whether the pod, on a node in these domains, exceeds no maxSkew with whenUnsatisfiable DoNotSchedule."""
        for (item, counts, matches_itself), least, domain in zip(
            self._constraints, self._min_matches, domains, strict=True
        ):
            if item.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
                continue
            if domain is None or counts[domain] + matches_itself - least > item["maxSkew"]:
                return False
        return True

    def count_matching(self, domains: Domains) -> int:
        """Number of matching pods in these domains."""
        return sum(
            counts.get(domain or "", 0) for (_, counts, _), domain in zip(self._constraints, domains, strict=True)
        )
