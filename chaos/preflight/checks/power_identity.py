"""Identity of the power controls: a control must switch the machine behind its Node."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.driver import PowerSettings
from chaos.model.inventory import Inventory
from chaos.model.power_identity import bind_power
from chaos.plan.identity import host_identity, node_identity
from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, HostObservations, Need

_HOST = frozenset({Need.HOST})
# Kinds whose settings name one machine; those of the others may be equal, as the Node's name is the default.
_NAMES_MACHINE = ("redfish", "ipmi", "command", "wake-on-lan")


class PowerIdentityCheck(Check):
    """Compares the UUID of a BMC, or the names and addresses of a container, with the Node."""

    name = "power-identity"
    summary = "the power control switches the machine behind the Node, by its UUID, name or address"
    facts = ("system-uuid",)
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            key, entry = observations.inventory.host_of(host.node)
            if host.target.power and entry.power is not None:
                yield _compare(observations, host, key, entry.power)


def _compare(observations: ClusterObservations, host: HostObservations, key: str, power: PowerSettings) -> Diagnosis:
    """Compare the power control of a host with the host's Node."""
    name = host.node
    nodes = {node: node_identity(each) for node, each in observations.view.nodes.items()}
    identity = host_identity(host.target.facts)
    binding = bind_power(nodes[name], identity, host.power_identity, nodes, power.identity or "")
    if binding.contradictions:
        message = f"the power control of host {key} is not that of {name}: {'; '.join(binding.contradictions)}"
        return refusal(message, f"correct power of the host {key} in the inventory; see docs/power.md", name, _HOST)
    if binding.proofs:
        return ok(f"it switches the machine of its Node by {', '.join(binding.proofs)}", name)
    if other := _same_power(observations.inventory, key, power):
        message = f"the hosts {key} and {other} of the inventory have the same power control"
        return refusal(message, f"correct power of {key} or {other} in the inventory", name, _HOST)
    message = f"{name}: nothing shows that its power control ({power.kind}) is that of this machine"
    return warning(message, f"check power of the host {key} in the inventory", name, frozenset({Need.DOWN}))


def _same_power(inventory: Inventory, key: str, power: PowerSettings) -> str:
    """Key of another host with an equal power control, "" if there is none."""
    if power.kind not in _NAMES_MACHINE:
        return ""
    return next((other for other, host in inventory.hosts.items() if other != key and host.power == power), "")


CHECK = PowerIdentityCheck()
