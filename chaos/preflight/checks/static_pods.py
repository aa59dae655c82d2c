"""Static pods on the target."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok
from chaos.preflight.observations import ClusterObservations, Need


class StaticPods(Check):
    """Facts 1.8: those that a shutdown's signal ended do not come back before the kubelet restarts."""

    name = "static-pods"
    summary = "no static pods run on the node"

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        needs = frozenset({Need.DOWN, Need.LOGIND})
        for name, host in sorted(signs.hosts.items()):
            if pods := host.target.static_pods:
                told = f"{name} runs static pods ({', '.join(pods)}): nothing moves them elsewhere"
                yield note(told, "choose a node without them, or leave the kubelet to start them again", name, needs)
            else:
                yield ok("none", name)


CHECK = StaticPods()
