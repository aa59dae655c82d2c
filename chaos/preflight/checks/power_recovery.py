"""Power control of the hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, Need


class PowerRecovery(Check):
    """The power control must answer, and report a reachable machine as on."""

    name = "power-recovery"
    summary = "the host has a power control that answers and can power it on"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        down = frozenset({Need.DOWN})
        for host in observations.reachable_hosts():
            if host.target.power_error:
                yield refusal(host.target.power_error, host.target.power_hint, host.node, frozenset({Need.HOST}))
            elif not host.target.power:
                message = f"{host.node} has no power control: once down it must boot by itself or be powered on by hand"
                yield warning(message, "give the host one in the inventory; see docs/power.md", host.node, down)
            elif "on" not in host.target.power_capabilities:
                message = f"{host.node}: its power control cannot power it on"
                yield warning(message, "give the host another one in the inventory", host.node, down)
            else:
                yield ok("its power control answers", host.node)


CHECK = PowerRecovery()
