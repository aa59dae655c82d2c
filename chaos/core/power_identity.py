"""Identity of the machine that a power control switches, and whether it is the machine behind a Node. Pure.

Clouds' controllers write provider IDs of Nodes (``spec.providerID``): ``aws:///eu-west-1a/i-0abc``. Addresses of
machines may change: an engine may give a container another address at each start. Risks of a machine that goes down are
those that its provider reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface

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


def provider_parts(provider_id: str, scheme: str) -> tuple[str, ...]:
    """The non-empty parts of the path and the authority; () for a provider ID with another scheme."""
    found, _, rest = provider_id.strip().partition("://")
    return tuple(part for part in rest.split("/") if part) if found.lower() == scheme else ()


def is_same_provider_id(one: str, other: str) -> bool:
    """Whether both are known and name the same machine; some parts, as a region of OpenStack, may be left out of one.

    Azure writes the same name in upper or lower case.
    """
    (scheme, parts), (other_scheme, others) = _split(one), _split(other)
    if not parts or not others or scheme != other_scheme:
        return False
    common = min(len(parts), len(others))
    return parts[-common:] == others[-common:]


def last_part(provider_id: str) -> str:
    """The name or ID of the machine itself, "" if unknown."""
    return provider_id.rpartition("/")[2]


def _split(provider_id: str) -> tuple[str, tuple[str, ...]]:
    scheme = provider_id.partition("://")[0].strip().lower()
    return scheme, provider_parts(provider_id.lower(), scheme)


def plain_address(text: str) -> IPv4Address | IPv6Address:
    """The address without its zone. An IPv4 address that is mapped to IPv6 becomes IPv4. Raises ValueError."""
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def moved_to(address: str, interfaces: Iterable[str]) -> str:
    """The machine's present address if ``address`` is a former one, "" if it is not known to be.

    ``interfaces`` are the present addresses with their networks, as ``172.18.0.5/16``. An address outside of these
    networks, such as that of a tunnel or a forwarded port, and a name may still be right.
    """
    try:
        known = ip_address(address)
    except ValueError:
        return ""
    present = [ip_interface(text) for text in interfaces]
    if any(each.ip == known for each in present):
        return ""
    return next((str(each.ip) for each in present if known in each.network), "")


class PowerRisk(Struct, frozen=True):
    """Why a machine that goes down might be lost or stay down; ``hint`` is what to do before.

    ``when_not_ready``: it needs no machine that is down, a Node that stays not Ready is enough.
    """

    message: str
    hint: str
    when_not_ready: bool = False


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
