"""The present address of a Node's host, and the certificate of the kubelet at an address."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec import Struct

from chaos.core.errors import NodefallError, Refused
from chaos.core.kube import Node
from chaos.core.ports import KubeApi, MachineAddresses
from chaos.core.power_identity import moved_to
from chaos.machines.pool import Hosts


class _Nodes(Struct):
    items: list[Node] = []


def node_address(kube: KubeApi, node: str) -> str:
    """The address of the node's host, read each time as it may change with a restart. Raises Refused.

    A dual-stack node has two addresses of a type: the first is in the IP family that the cluster prefers.
    """
    found = _read_node(kube, node)
    status = found.status if found else None
    by_type = {a.type: a.address for a in reversed((status.addresses if status else None) or ())}
    address = by_type.get("InternalIP") or by_type.get("ExternalIP") or by_type.get("Hostname")
    if not address:
        raise Refused(f"node {node} has no address", hint="set the address of its host in the inventory")
    return address


def node_provider_id(kube: KubeApi, node: str) -> str:
    """The ``spec.providerID`` of the Node, "" without one. Raises NodefallError if the API server does not answer."""
    found = _read_node(kube, node)
    return (found.spec.provider_id if found and found.spec else None) or ""


def _read_node(kube: KubeApi, node: str) -> Node | None:
    response = kube.request("GET", f"/api/v1/nodes/{node}")
    return msgspec.json.decode(response.body, type=Node) if response.status == 200 else None


def host_address(kube: KubeApi, node: str, machine: MachineAddresses | None) -> str:
    """The address of the node's host, or that of its container if it has moved. Raises NodefallError.

    A container may have another address after each start, and its former one may be that of another container. The
    Node object shows the new one only when the kubelet has posted it.
    """
    address = node_address(kube, node)
    return moved_to(address, _interfaces(machine)) or address


def with_move(error: NodefallError, node: str, address: str, machine: MachineAddresses | None) -> NodefallError:
    """``error`` of a connection to the ``address`` of the inventory, with the present one if the container moved.

    Without an address in the inventory the machine is not asked: the connection was to the present one.
    """
    new = moved_to(address, _interfaces(machine)) if address else ""
    if not new:
        return error
    return type(error)(
        f"{error.message}; {node} is now at {new}, and the inventory has {address}",
        hint=f"set address of the host to {new}, or remove it: then the present address is read",
    )


def _interfaces(machine: MachineAddresses | None) -> tuple[str, ...]:
    """Present addresses of a container; none where they are not known."""
    with suppress(NodefallError):
        return machine.interfaces() if machine else ()
    return ()


def kubelet_certificate(address: str, kube: KubeApi, hosts: Hosts) -> str:
    """The self-signed certificate of the kubelet at ``address``, read over a verified session. Raises NodefallError."""
    response = kube.request("GET", "/api/v1/nodes")
    nodes = msgspec.json.decode(response.body, type=_Nodes).items if response.status == 200 else []
    for node in nodes:
        if any(known.address == address for known in (node.status and node.status.addresses) or ()):
            return str(hosts.read(node.metadata.name, "kubelet-certificate"))
    raise NodefallError(f"no node has the address {address}")
