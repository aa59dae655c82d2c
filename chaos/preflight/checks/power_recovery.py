"""How a machine that is down comes back."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, Need


class PowerRecovery(Check):
    """A power control that answers, and says of a machine that answers that it is on."""

    name = "way-back"
    summary = "the host has a power control that answers and can power it on"

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        down = frozenset({Need.DOWN})
        for host in signs.reachable_hosts():
            if host.power_error:
                yield refusal(host.power_error, host.power_hint, host.node, frozenset({Need.HOST}))
            elif not host.target.power:
                told = f"{host.node} has no power control: it comes back by itself, or by somebody's hand"
                yield warning(told, "give its host one in the inventory; see docs/power.md", host.node, down)
            elif "on" not in host.target.power_capabilities:
                told = f"{host.node}: its power control cannot power it on"
                yield warning(told, "give its host another one in the inventory", host.node, down)
            else:
                yield ok("its power control answers", host.node)


CHECK = PowerRecovery()
