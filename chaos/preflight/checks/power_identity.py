"""Identity of the power controls: a control must switch the machine behind its Node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.model.driver import PowerSettings
from chaos.model.identity import Binding, NodeIdentity, is_same_uuid
from chaos.model.inventory import Inventory
from chaos.model.power_identity import bind_power
from chaos.plan.identity import host_identity, node_identity
from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, HostObservations, Need

_HOST = frozenset({Need.HOST})


class PowerIdentityCheck(Check):
    """Compares the UUID of a BMC, or the names and addresses of a container, with the Node."""

    name = "power-identity"
    summary = "the power control switches the machine behind the Node, by its UUID, name or address"
    facts = ("system-uuid",)
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        nodes = {name: node_identity(node) for name, node in observations.view.nodes.items()}
        for host in observations.reachable_hosts():
            key, entry = observations.inventory.host_of(host.node)
            if not host.target.power or entry.power is None:
                continue
            known, expected = host_identity(host.target.facts), entry.power.identity or ""
            binding = bind_power(nodes[host.node], known, host.power_identity, nodes, expected)
            if not binding.proofs and not binding.contradictions and (others := _others(host, nodes)):
                yield _ambiguous(host, key, others)
            else:
                yield _diagnose(host.node, key, entry.power, binding, observations.inventory)


def _others(host: HostObservations, nodes: Mapping[str, NodeIdentity]) -> list[str]:
    """Other Nodes with the UUID that the host's power control reports."""
    uuid = host.power_identity.system_uuid
    return sorted(name for name, node in nodes.items() if name != host.node and is_same_uuid(node.system_uuid, uuid))


def _ambiguous(host: HostObservations, key: str, others: list[str]) -> Diagnosis:
    uuid = host.power_identity.system_uuid
    message = (
        f"the power control of host {key} may be that of {', '.join(others)}: they have its system UUID {uuid} too"
    )
    hint = f"give each machine its own UUID, or, if the power control is the right one, write identity: {uuid} in power"
    return refusal(message, hint, host.node, frozenset({Need.DOWN}))


def _diagnose(name: str, key: str, power: PowerSettings, binding: Binding, inventory: Inventory) -> Diagnosis:
    """The diagnosis for the Node ``name``, whose host is ``key`` in the inventory."""
    if binding.contradictions:
        message = f"the power control of host {key} is not that of {name}: {'; '.join(binding.contradictions)}"
        return refusal(message, f"correct power of the host {key} in the inventory; see docs/power.md", name, _HOST)
    if binding.proofs:
        return ok(f"it switches the machine of its Node by {', '.join(binding.proofs)}", name)
    if other := _same_power(inventory, key, power):
        message = f"the hosts {key} and {other} of the inventory have the same power control"
        return refusal(message, f"correct power of {key} or {other} in the inventory", name, _HOST)
    message = f"{name}: nothing shows that its power control ({power.kind}) is that of this machine"
    return warning(message, f"check power of the host {key} in the inventory", name, frozenset({Need.DOWN}))


def _same_power(inventory: Inventory, key: str, power: PowerSettings) -> str:
    """Key of another host with an equal power control, "" if there is none."""
    if not power.names_machine:
        return ""
    return next((other for other, host in inventory.hosts.items() if other != key and host.power == power), "")


CHECK = PowerIdentityCheck()
