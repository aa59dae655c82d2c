"""The kubelet's delay lock."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need


class KubeletInhibitor(Check):
    """Facts 1.1: a kubelet whose first try failed never tries again; after a cancelled shutdown it may be lost."""

    name = "kubelet-inhibitor"
    summary = "the kubelet holds its delay lock on shutdown, where it has a grace period"
    facts = ("kubelet-inhibitor", "configz")

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for host in signs.reachable_hosts():
            held = host.fact("kubelet-inhibitor")
            if held:
                yield ok("it is held", host.node)
            elif held is False and host.shutdown_grace != 0:
                told = f"{host.node}: the kubelet does not hold its lock, so a power-off is not graceful"
                unit = host.fact("kubelet-unit") or "kubelet"
                mend = f"systemctl restart {unit} there, then systemd-inhibit --list"
                yield refusal(told, mend, host.node, frozenset({Need.GRACEFUL}))


CHECK = KubeletInhibitor()
