"""The kubelet's effective configuration."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.judge.facts import kubelet_fact
from chaos.model.duration import format_duration
from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, Need


class KubeletConfig(Check):
    """Facts 1.2: a total of 0, or critical pods' part longer than it, and the shutdown manager is off."""

    name = "kubelet-config"
    summary = "the kubelet's effective configuration can be read, and keeps time for a graceful shutdown"
    facts = ("configz",)

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        graceful = frozenset({Need.GRACEFUL})
        for name, host in sorted(signs.hosts.items()):
            config = host.fact("configz")
            if host.error:
                continue
            if not config:
                told = f"{name}: the kubelet's configuration could not be read from its own port"
                mend = "let this machine reach the kubelet's port, see cluster.kubeletCA; bounds by it are unknown"
                yield warning(told, mend, name, frozenset({Need.KUBELET_CONFIG, Need.GRACEFUL}))
                continue
            grace = host.shutdown_grace or 0.0
            critical = kubelet_fact(config, "kubelet.shutdownGracePeriodCriticalPods") or 0.0
            if grace == 0:
                told = f"{name}: shutdownGracePeriod is 0, so no shutdown is graceful"
                yield refusal(told, "set it in the kubelet's configuration, restart the kubelet", name, graceful)
            elif critical > grace:
                told = f"{name}: shutdownGracePeriodCriticalPods is longer than shutdownGracePeriod: neither counts"
                yield refusal(told, "make it shorter, restart the kubelet", name, graceful)
            else:
                yield ok(f"shutdownGracePeriod is {format_duration(grace)}", name)


CHECK = KubeletConfig()
