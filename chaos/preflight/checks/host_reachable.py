"""Connections to the hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.inventory import Inventory
from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, HostObservations, Need


class HostReachable(Check):
    """The check uses the same kind of connection as a run."""

    name = "host-reachable"
    summary = "the host can be reached and trusted, and reports its machine ID and boot"
    facts = ("machine-id", "boot-id", "pid1-start")
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for node, host in sorted(observations.hosts.items()):
            if host.error:
                hint = host.hint or f"make sure that the host of {node} can be reached"
                yield refusal(host.error, hint, node, frozenset({Need.HOST}))
            elif host.is_reachable:
                yield ok(_describe(observations.inventory, host), node)


def _describe(inventory: Inventory, host: HostObservations) -> str:
    """That it answers; of a Windows host also over what, as there is a choice."""
    if host.target.os != "windows":
        return "it answers"
    _, entry = inventory.host_of(host.node)
    transport = entry.transport or inventory.defaults.transport
    return "it answers over WinRM" if transport == "winrm" else f"it answers over {str(transport or 'ssh').upper()}"


CHECK = HostReachable()
