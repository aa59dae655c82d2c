"""Providers of machines that replace, terminate or cannot stop and start a machine."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need

_DOWN, _NOT_READY = frozenset({Need.DOWN}), frozenset({Need.DOWN, Need.ENDS_PODS})


class PowerProvider(Check):
    """Auto-scaling groups, node auto-repair, spot instances and the like, as the power control reports them."""

    name = "power-provider"
    summary = "the cloud keeps a machine that is off, and may start it again"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            for risk in host.power_risks:
                needs = _NOT_READY if risk.when_not_ready else _DOWN
                yield refusal(f"{host.node}: {risk.message}", risk.hint, host.node, needs)
            if host.target.power and not host.power_risks:
                yield ok("nothing is known that would replace it", host.node)


CHECK = PowerProvider()
