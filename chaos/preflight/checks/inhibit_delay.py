"""logind's limit on delaying a shutdown."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.duration import format_duration
from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, HostObservations, Need


class InhibitDelay(Check):
    """The kubelet raises the limit once; a drop-in that sorts later (unattended-upgrades) wins (facts 1.1 and 1.7)."""

    name = "inhibit-delay"
    summary = "logind's InhibitDelayMaxSec is not shorter than the kubelet's shutdown grace period"
    systems = frozenset({"linux"})
    facts = ("inhibit-delay-max", "configz")

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            limit, grace = _seconds(host), host.shutdown_grace
            if limit is None or not grace:
                continue
            if limit < grace:
                message = f"{host.node}: logind waits {format_duration(limit)} at most, the kubelet needs "
                hint = (
                    "raise InhibitDelayMaxSec in a drop-in that sorts last in /etc/systemd/logind.conf.d "
                    "(unattended-upgrades brings one with 30s), restart the kubelet"
                )
                yield refusal(message + format_duration(grace), hint, host.node, frozenset({Need.GRACEFUL}))
            else:
                yield ok(f"logind waits up to {format_duration(limit)}", host.node)


def _seconds(host: HostObservations) -> float | None:
    """Seconds, of ``t 30000000`` as busctl prints it; None if the fact is unknown."""
    number = str(host.fact("inhibit-delay-max") or "").rpartition(" ")[2]
    return int(number) / 1e6 if number.isascii() and number.isdigit() else None


CHECK = InhibitDelay()
