"""The kubelet's delay lock."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need


class KubeletInhibitor(Check):
    """A kubelet takes the lock only once, and may lose it when a shutdown is cancelled (facts 1.1)."""

    name = "kubelet-inhibitor"
    summary = "the kubelet holds its delay lock on shutdown, where it has a grace period"
    systems = frozenset({"linux"})
    facts = ("inhibitor-kubelet", "configz")

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            is_held = host.fact("inhibitor-kubelet")
            if is_held:
                yield ok("the lock is held", host.node)
            elif is_held is False and host.shutdown_grace != 0:
                message = f"{host.node}: the kubelet does not hold its delay lock, so a power-off is not graceful"
                unit = host.fact("kubelet-unit") or "kubelet"
                hint = f"run systemctl restart {unit} there, then systemd-inhibit --list"
                yield refusal(message, hint, host.node, frozenset({Need.GRACEFUL}))


CHECK = KubeletInhibitor()
