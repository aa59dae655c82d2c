"""Identity of the power controls: a control must switch the machine behind its Node."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.power_identity import bind_power
from chaos.plan.identity import host_identity, node_identity
from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, Need


class PowerIdentityCheck(Check):
    """Compares the UUID of a BMC, or the names and addresses of a container, with the Node."""

    name = "power-identity"
    summary = "the power control switches the machine behind the Node, by its UUID, name or address"
    facts = ("system-uuid",)
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        nodes = {name: node_identity(node) for name, node in observations.view.nodes.items()}
        for host in observations.reachable_hosts():
            name = host.node
            key, entry = observations.inventory.host_of(name)
            if not host.target.power or entry.power is None:
                continue
            expected = entry.power.identity or ""
            binding = bind_power(nodes[name], host_identity(host.target.facts), host.power_identity, nodes, expected)
            if binding.contradictions:
                message = f"the power control of host {key} is not that of {name}: {'; '.join(binding.contradictions)}"
                hint = f"correct power of the host {key} in the inventory; see docs/power.md"
                yield refusal(message, hint, name, frozenset({Need.HOST}))
            elif not binding.proofs:
                message = f"{name}: nothing shows that its power control ({entry.power.kind}) is that of this machine"
                hint = f"check power of the host {key} in the inventory by hand, and give it an identity if it has one"
                yield warning(message, hint, name, frozenset({Need.DOWN}))
            else:
                yield ok(f"it switches the machine of its Node by {', '.join(binding.proofs)}", name)


CHECK = PowerIdentityCheck()
