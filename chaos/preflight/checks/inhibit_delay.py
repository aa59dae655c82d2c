"""How long logind waits for the kubelet."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.duration import format_duration
from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, HostObservations, Need


class InhibitDelay(Check):
    """Facts 1.1 and 1.7: the kubelet raises it once; a drop-in that sorts later (unattended-upgrades) wins."""

    name = "inhibit-delay"
    summary = "logind's InhibitDelayMaxSec is not shorter than the kubelet's shutdown grace period"
    facts = ("inhibit-delay-max", "configz")

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for host in signs.reachable_hosts():
            longest, grace = _seconds(host), host.shutdown_grace
            if longest is None or not grace:
                continue
            if longest < grace:
                told = f"{host.node}: logind waits {format_duration(longest)} at most, the kubelet wants "
                mend = (
                    "raise InhibitDelayMaxSec in a drop-in that sorts last in /etc/systemd/logind.conf.d "
                    "(unattended-upgrades brings one with 30s), restart the kubelet"
                )
                yield refusal(told + format_duration(grace), mend, host.node, frozenset({Need.GRACEFUL}))
            else:
                yield ok(f"logind waits up to {format_duration(longest)}", host.node)


def _seconds(host: HostObservations) -> float | None:
    """``t 30000000``, as busctl prints it."""
    number = str(host.fact("inhibit-delay-max") or "").rpartition(" ")[2]
    return int(number) / 1e6 if number.isascii() and number.isdigit() else None


CHECK = InhibitDelay()
