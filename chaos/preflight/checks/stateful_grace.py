"""Pods of StatefulSets without a grace period."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.kube import controller_of, full_name
from chaos.preflight.check import Check, Diagnosis, ok, warning
from chaos.preflight.observations import ClusterObservations, Need


class StatefulGrace(Check):
    """A pod without a grace period is removed from the API at once, while it may still run on an unreachable node.

    Then two pods of that name run (CheckGracefulDelete in pkg/registry/core/pod/strategy.go).
    """

    name = "stateful-grace"
    summary = "no StatefulSet's pod on the node has terminationGracePeriodSeconds 0"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for name in sorted(observations.hosts):
            found = [
                full_name(pod.metadata)
                for pod in observations.view.pods
                if pod.spec and pod.spec.node_name == name and pod.spec.termination_grace_period_seconds == 0
                if (owner := controller_of(pod)) and owner.kind == "StatefulSet"
            ]
            if found:
                message = f"{name}: {', '.join(sorted(found))} of a StatefulSet with terminationGracePeriodSeconds 0"
                hint = "give it a grace period: else two pods of one name may run at once"
                yield warning(message, hint, name, frozenset({Need.ENDS_PODS}))
            else:
                yield ok("none", name)


CHECK = StatefulGrace()
