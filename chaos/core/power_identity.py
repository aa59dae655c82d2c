"""Identity of the machine that a power control switches, and whether it is the machine behind a Node. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from chaos.core.identity import (
    Binding,
    HostIdentity,
    NodeIdentity,
    has_firmware_uuid,
    is_same_uuid,
    is_uuid,
    share_address,
    shared_fields,
)
from chaos.core.provider_id import is_same_provider_id, last_part


class PowerIdentity(Struct, frozen=True):
    """Identity of a machine as its power control reports it; "" and () for what the control does not know.

    ``system_uuid`` is the firmware's UUID, ``provider_id`` what a cloud's controller writes into ``spec.providerID``.
    ``names`` and ``addresses`` are those of a container or an instance; one that was recreated with the same name has
    another ``container_id``, which is the instance's ID where its cloud gives it one.
    """

    system_uuid: str = ""
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    container_id: str = ""
    provider_id: str = ""

    @property
    def key(self) -> str:
        """The part that stays the same while the machine is off and on; "" if nothing is known."""
        unique = self.system_uuid.lower() or self.container_id or self.provider_id.lower()
        return unique or ",".join(sorted(set(self.names)))


def bind_power(
    node: NodeIdentity, host: HostIdentity, power: PowerIdentity, nodes: Mapping[str, NodeIdentity], expected: str = ""
) -> Binding:
    """Compare the machine of a power control with a Node, whose host is bound already.

    ``expected`` is the identity that the inventory gives for the power control. The result has neither proofs nor
    contradictions where nothing can be compared.
    """
    if expected:
        return _compare_expected(power, expected)
    proofs = [
        *_provider_proofs(node, power, nodes),
        *_uuid_proofs(node, host, power, nodes),
        *_name_proofs(node, power),
    ]
    contradictions = [
        *_provider_contradictions(node, power, nodes),
        *_uuid_contradictions(node, host, power, nodes),
        *_name_contradictions(node, power, nodes),
    ]
    return Binding(tuple(proofs), tuple(contradictions))


def _compare_expected(power: PowerIdentity, expected: str) -> Binding:
    is_provider = power.provider_id and expected in (power.provider_id, last_part(power.provider_id))
    if is_provider or is_same_uuid(power.system_uuid, expected) or expected in power.names:
        return Binding(("identity in the inventory",), ())
    reported = power.key or "none"
    return Binding((), (f"the inventory expects the identity {expected}, but the power control reports {reported}",))


def _uuids(node: NodeIdentity, host: HostIdentity) -> list[str]:
    """The UUIDs that the machine's firmware may report: by its kubelet, and read on the host."""
    reported = [node.system_uuid] if has_firmware_uuid(node) else []
    return reported or ([host.system_uuid] if is_uuid(host.system_uuid) else [])


def _provider_proofs(node: NodeIdentity, power: PowerIdentity, nodes: Mapping[str, NodeIdentity]) -> Iterator[str]:
    if _nodes_of(power, nodes) == [node.name]:
        yield "provider ID"


def _provider_contradictions(
    node: NodeIdentity, power: PowerIdentity, nodes: Mapping[str, NodeIdentity]
) -> Iterator[str]:
    owners = _nodes_of(power, nodes)
    if not power.provider_id or owners == [node.name]:
        return
    reported = f"{power.provider_id} (that of {', '.join(owners)})" if owners else power.provider_id
    if node.provider_id:
        yield f"the Node's provider ID is {node.provider_id}, but the power control is that of {reported}"
    elif owners:
        yield f"the power control is that of {reported}"


def _nodes_of(power: PowerIdentity, nodes: Mapping[str, NodeIdentity]) -> list[str]:
    """The Nodes with the provider ID of the power control."""
    return sorted(name for name, each in nodes.items() if is_same_provider_id(each.provider_id, power.provider_id))


def _uuid_proofs(
    node: NodeIdentity, host: HostIdentity, power: PowerIdentity, nodes: Mapping[str, NodeIdentity]
) -> Iterator[str]:
    is_unique = "system_uuid" not in shared_fields(node, nodes)
    if is_unique and any(is_same_uuid(uuid, power.system_uuid) for uuid in _uuids(node, host)):
        yield "system UUID"


def _uuid_contradictions(
    node: NodeIdentity, host: HostIdentity, power: PowerIdentity, nodes: Mapping[str, NodeIdentity]
) -> Iterator[str]:
    uuids = _uuids(node, host)
    if not is_uuid(power.system_uuid) or any(is_same_uuid(uuid, power.system_uuid) for uuid in uuids):
        return
    others = sorted(name for name, each in nodes.items() if is_same_uuid(each.system_uuid, power.system_uuid))
    reported = f"{power.system_uuid} (that of {', '.join(others)})" if others else power.system_uuid
    if uuids:
        yield f"the machine's system UUID is {uuids[0]}, but the power control is that of {reported}"
    elif others:
        yield f"the power control is that of {reported}"


def _name_proofs(node: NodeIdentity, power: PowerIdentity) -> Iterator[str]:
    if power.provider_id:
        return  # another network of a cloud may have the same names and addresses
    if node.name in power.names:
        yield "name"
    elif share_address(node.addresses, power.addresses):
        yield "address"


def _name_contradictions(node: NodeIdentity, power: PowerIdentity, nodes: Mapping[str, NodeIdentity]) -> Iterator[str]:
    if node.name in power.names:
        return
    label = " / ".join(dict.fromkeys(power.names))
    if others := sorted(set(power.names) & nodes.keys()):
        yield f"the power control is that of {label}, which is the name of the Node {others[0]}"
    elif power.addresses and node.addresses and not share_address(node.addresses, power.addresses):
        yield (
            f"the Node has {', '.join(node.addresses)}, but the power control is that of {label}"
            f" with {', '.join(power.addresses)}"
        )
