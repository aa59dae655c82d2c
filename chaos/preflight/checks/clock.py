"""Offsets of the hosts' clocks."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, warning
from chaos.preflight.observations import ClusterObservations, Need

_BOUND = 1.0  # seconds, as in the judge
_HINTS = {
    "linux": "synchronise both clocks (chrony, systemd-timesyncd)",
    "windows": "synchronise both clocks: run w32tm.exe /resync there, and see w32tm.exe /query /status",
}


class Clock(Check):
    """Bounds are judged by the local clock; timestamps of the host are additional evidence."""

    name = "clock"
    summary = "the host's clock is within 1 s of the local clock"
    facts = ("host-time",)

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            if host.clock_offset is None:
                continue
            offset = abs(host.clock_offset)
            if offset - host.clock_uncertainty > _BOUND:
                direction = "ahead of" if host.clock_offset > 0 else "behind"
                message = (
                    f"{host.node}: its clock is {offset:.1f} s {direction} the local clock "
                    f"(± {host.clock_uncertainty:.1f} s)"
                )
                yield warning(message, _HINTS[host.target.os], host.node, frozenset({Need.HOST}))
            else:
                yield ok("it agrees with the local clock", host.node)


CHECK = Clock()
