"""Power controls of the hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.core.driver import PowerSettings
from chaos.core.identity import Binding, NodeIdentity, is_same_uuid
from chaos.core.inventory import Inventory
from chaos.core.power_identity import bind_power
from chaos.engine.observations import ClusterObservations, HostObservations, Need
from chaos.engine.planning.identity import host_identity, node_identity
from chaos.engine.preflight.check import Diagnosis, check, host_check, ok, refusal, warning


@host_check("power-recovery", "the host has a power control that answers and can power it on")
def power_recovery(host: HostObservations) -> Diagnosis | None:
    """The power control must answer, and report a reachable machine as on."""
    down = frozenset({Need.DOWN})
    if host.target.power_error:
        return refusal(host.target.power_error, host.target.power_hint, host.node, frozenset({Need.HOST}))
    if not host.target.power:
        message = f"{host.node} has no power control: once down it must boot by itself or be powered on by hand"
        return warning(message, "give the host one in the inventory; see docs/power.md", host.node, down)
    if "on" not in host.target.power_capabilities:
        message = f"{host.node}: its power control cannot power it on"
        return warning(message, "give the host another one in the inventory", host.node, down)
    return ok("its power control answers", host.node)


_HOST = frozenset({Need.HOST})


@check(
    "power-identity",
    "the power control switches the machine behind the Node, by its UUID, name or address",
    facts=("system-uuid",),
    is_final=True,
)
def power_identity(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Compares the UUID of a BMC, or the names and addresses of a container, with the Node."""
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


_DOWN, _NOT_READY = frozenset({Need.DOWN}), frozenset({Need.DOWN, Need.ENDS_PODS})


@check("power-provider", "the cloud keeps a machine that is off, and may start it again")
def power_provider(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Auto-scaling groups, node auto-repair, spot instances and the like, as the power control reports them."""
    for host in observations.reachable_hosts():
        for risk in host.power_risks:
            needs = _NOT_READY if risk.when_not_ready else _DOWN
            yield refusal(f"{host.node}: {risk.message}", risk.hint, host.node, needs)
        if host.target.power and not host.power_risks:
            yield ok("nothing is known that would replace it", host.node)
