"""Whether the hosts answer, and tell who they are."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need


class HostReachable(Check):
    """Over the very line that a run would use."""

    name = "reachable"
    summary = "the host can be reached and trusted, and tells its machine ID and its boot"
    facts = ("machine-id", "boot-id", "pid1-start")
    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for node, host in sorted(signs.hosts.items()):
            if host.error:
                mend = host.hint or f"see that the host of {node} can be reached"
                yield refusal(host.error, mend, node, frozenset({Need.HOST}))
            elif host.is_reachable:
                yield ok("it answers", node)


CHECK = HostReachable()
