"""logind, without which there is no graceful shutdown."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need

# images/base/Dockerfile of kind installs no dbus, and takes logind out of multi-user.target.
_CONTAINER = (
    "; it is a container: a stock image of kind has neither D-Bus nor logind, so its kubelet cannot take the lock"
    " by which it delays a shutdown. Partitions, kubelet faults, power cuts, drains and taints work there all the same"
)


class Logind(Check):
    """Facts 1.7: without logind or D-Bus the kubelet's shutdown manager is off, and the kubelet does not mind."""

    name = "logind"
    summary = "logind answers on D-Bus"
    facts = ("inhibitors", "shared-kernel")

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for host in signs.reachable_hosts():
            if "inhibitors" in host.target.facts:
                yield ok("it answers", host.node)
                continue
            told = (
                f"{host.node}: logind does not answer, so no shutdown is graceful: {host.unknown_reason('inhibitors')}"
            )
            mend = "install dbus and systemd-logind, start them, then restart the kubelet"
            if host.fact("shared-kernel"):
                told += _CONTAINER
                mend = "use a node image that has both, as nodefall kind up does (hosts/kind/Dockerfile)"
            yield refusal(told, mend, host.node, frozenset({Need.LOGIND}))


CHECK = Logind()
