"""StatefulSets whose pods have no grace at all."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.kube import controller_of, full_name
from chaos.preflight.check import Check, Diagnosis, ok, warning
from chaos.preflight.observations import ClusterObservations, Need


class StatefulGrace(Check):
    """A pod without grace goes from the API at once (CheckGracefulDelete in pkg/registry/core/pod/strategy.go), while
    it may still run on a node that is cut off: then there are two.
    """

    name = "stateful-grace"
    summary = "no StatefulSet's pod on the node has terminationGracePeriodSeconds 0"

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for name in sorted(signs.hosts):
            found = [
                full_name(pod.metadata)
                for pod in signs.view.pods
                if pod.spec and pod.spec.node_name == name and pod.spec.termination_grace_period_seconds == 0
                if (owner := controller_of(pod)) and owner.kind == "StatefulSet"
            ]
            if found:
                told = f"{name}: {', '.join(sorted(found))} of a StatefulSet with terminationGracePeriodSeconds 0"
                mend = "give it a grace period: two pods of one name may run at once otherwise"
                yield warning(told, mend, name, frozenset({Need.ENDS_PODS}))
            else:
                yield ok("none", name)


CHECK = StatefulGrace()
