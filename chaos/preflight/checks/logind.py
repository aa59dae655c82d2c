"""logind, without which there is no graceful shutdown."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need

# images/base/Dockerfile of kind installs no dbus and removes logind from multi-user.target.
_CONTAINER = (
    "; it is a container: a stock image of kind has neither D-Bus nor logind, so its kubelet cannot take the lock"
    " that delays a shutdown. Partitions, kubelet faults, power cuts, drains and taints do work there"
)


class Logind(Check):
    """Without logind or D-Bus the kubelet's shutdown manager is off, without an error (facts 1.7)."""

    name = "logind"
    summary = "logind answers on D-Bus"
    systems = frozenset({"linux"})
    facts = ("inhibitor-locks", "shared-kernel")

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            if "inhibitor-locks" in host.target.facts:
                yield ok("it answers", host.node)
                continue
            reason = host.unknown_reason("inhibitor-locks")
            message = f"{host.node}: logind does not answer, so no shutdown is graceful: {reason}"
            hint = "install dbus and systemd-logind, start them, then restart the kubelet"
            if host.fact("shared-kernel"):
                message += _CONTAINER
                hint = "use a node image that has both, as nodefall kind up does (hosts/kind/Dockerfile)"
            yield refusal(message, hint, host.node, frozenset({Need.LOGIND}))


CHECK = Logind()
