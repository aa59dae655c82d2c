"""What lists the containers that run on a host."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, HostObservations, Need

_HINTS = {
    "linux": "install crictl or, where containerd is the runtime, ctr",
    "windows": "choose a node with Linux: containers of Windows hosts cannot be listed yet",
}


class ContainerList(Check):
    """The API server removes a pod that is force-deleted while its containers run: only the host itself shows them."""

    name = "container-list"
    summary = "the host lists its running containers, where an assertion asks for them"
    facts = ("runtime-socket", "runtime-client")

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            if why := _missing(host):
                message = f"{host.node}: its running containers cannot be listed: {why}"
                yield refusal(message, _HINTS[host.target.os], host.node, frozenset({Need.CONTAINERS}))
            else:
                yield ok(f"{host.fact('runtime-client')} lists the running containers", host.node)


def _missing(host: HostObservations) -> str:
    """Why the containers of a host cannot be listed; "" if they can."""
    unknown = [host.unknown_reason(fact) for fact in ContainerList.facts if host.fact(fact) is None]
    if unknown:
        return unknown[0]
    client, socket = host.fact("runtime-client"), host.fact("runtime-socket")
    if client.endswith("/ctr") and "containerd" not in socket:
        return f"{client} speaks only to containerd, not to {socket}"
    return ""


CHECK = ContainerList()
