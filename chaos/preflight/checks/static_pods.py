"""Static pods on the target."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok
from chaos.preflight.observations import ClusterObservations, Need


class StaticPods(Check):
    """A static pod that a shutdown has ended does not start again before the kubelet does (facts 1.8)."""

    name = "static-pods"
    summary = "no static pods run on the node"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        needs = frozenset({Need.DOWN, Need.LOGIND})
        for name, host in sorted(observations.hosts.items()):
            if pods := host.target.static_pods:
                message = f"{name} runs static pods ({', '.join(pods)}): they are not moved to other nodes"
                yield note(
                    message, "choose a node without them, or rely on the kubelet to start them again", name, needs
                )
            else:
                yield ok("none", name)


CHECK = StaticPods()
