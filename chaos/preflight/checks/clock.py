"""Offsets of the hosts' clocks."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, HostObservations, Need

_BOUND = 1.0  # seconds, as in the judge
_LATE_BOUND = 60.0  # seconds by which a failsafe task may act late
_HINTS = {
    "linux": "synchronise both clocks (chrony, systemd-timesyncd)",
    "windows": "synchronise both clocks: run w32tm.exe /resync there, and see w32tm.exe /query /status",
}


class Clock(Check):
    """Bounds are judged by the local clock; timestamps of the host are additional evidence.

    Failsafe tasks of Windows follow the host's clock: one that is set back while they wait makes them late.
    """

    name = "clock"
    summary = "the host's clock is within 1 s of the local clock"
    facts = ("host-time",)

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            if host.clock_offset is not None:
                yield _compare(host, host.clock_offset)


def _compare(host: HostObservations, offset: float) -> Diagnosis:
    if abs(offset) - host.clock_uncertainty <= _BOUND:
        return ok("it agrees with the local clock", host.node)
    direction = "ahead of" if offset > 0 else "behind"
    message = (
        f"{host.node}: its clock is {abs(offset):.1f} s {direction} the local clock (± {host.clock_uncertainty:.1f} s)"
    )
    hint, needs = _HINTS[host.target.os], frozenset({Need.HOST})
    if host.target.os == "windows" and offset - host.clock_uncertainty > _LATE_BOUND:
        return refusal(f"{message}; set right, it would make failsafe tasks late", hint, host.node, needs)
    return warning(message, hint, host.node, needs)


CHECK = Clock()
