"""The kubelet's effective configuration."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.judge.facts import kubelet_fact
from chaos.model.duration import format_duration
from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, Need


class KubeletConfig(Check):
    """The shutdown manager is off if the period is 0, or shorter than that of critical pods (facts 1.2)."""

    name = "kubelet-config"
    summary = "the kubelet's effective configuration can be read, and leaves time for a graceful shutdown"
    facts = ("configz",)

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        graceful = frozenset({Need.GRACEFUL})
        for name, host in sorted(observations.hosts.items()):
            config = host.fact("configz")
            if host.error:
                continue
            if not config:
                message = f"{name}: the kubelet's configuration could not be read from its port"
                hint = (
                    "make the kubelet's port reachable from this machine and check cluster.kubeletCA; "
                    "until then, bounds that use the configuration are unknown"
                )
                yield warning(message, hint, name, frozenset({Need.KUBELET_CONFIG, Need.GRACEFUL}))
                continue
            grace = host.shutdown_grace or 0.0
            critical = kubelet_fact(config, "kubelet.shutdownGracePeriodCriticalPods") or 0.0
            if grace == 0:
                message = f"{name}: shutdownGracePeriod is 0, so no shutdown is graceful"
                yield refusal(message, "set it in the kubelet's configuration, restart the kubelet", name, graceful)
            elif critical > grace:
                message = (
                    f"{name}: shutdownGracePeriodCriticalPods is longer than shutdownGracePeriod: both are ignored"
                )
                yield refusal(message, "make it shorter, restart the kubelet", name, graceful)
            else:
                yield ok(f"shutdownGracePeriod is {format_duration(grace)}", name)


CHECK = KubeletConfig()
