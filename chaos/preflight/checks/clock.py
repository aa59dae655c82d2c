"""Clocks of the hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, warning
from chaos.preflight.observations import ClusterObservations, Need

_BOUND = 1.0  # seconds, as in the judge


class Clock(Check):
    """Bounds are judged by our clock; times that the host writes are evidence beside it."""

    name = "clock"
    summary = "the host's clock is not more than 1 s off ours"
    facts = ("host-time",)

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for host in signs.reachable_hosts():
            if host.clock_offset is None:
                continue
            off = abs(host.clock_offset)
            if off - host.clock_uncertainty > _BOUND:
                way = "ahead of" if host.clock_offset > 0 else "behind"
                told = f"{host.node}: its clock is {off:.1f}s {way} ours (give or take {host.clock_uncertainty:.1f}s)"
                yield warning(told, "synchronise both (chrony, systemd-timesyncd)", host.node, frozenset({Need.HOST}))
            else:
                yield ok("it agrees with ours", host.node)


CHECK = Clock()
