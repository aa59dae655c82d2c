"""Node objects: the address of a host, and the certificate of the kubelet at an address."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from chaos.hosts.pool import Hosts
from chaos.model.errors import NodefallError, Refused
from chaos.model.kube import Node
from chaos.model.ports import KubeApi


class _Nodes(Struct):
    items: list[Node] = []


def node_address(kube: KubeApi, node: str) -> str:
    """The address of the node's host, read each time as it may change with a restart. Raises Refused.

    A dual-stack node has two addresses of a type: the first is in the IP family that the cluster prefers.
    """
    response = kube.request("GET", f"/api/v1/nodes/{node}")
    status = msgspec.json.decode(response.body, type=Node).status if response.status == 200 else None
    by_type = {a.type: a.address for a in reversed((status.addresses if status else None) or ())}
    address = by_type.get("InternalIP") or by_type.get("ExternalIP") or by_type.get("Hostname")
    if not address:
        raise Refused(f"node {node} has no address", hint="set the address of its host in the inventory")
    return address


def kubelet_certificate(address: str, kube: KubeApi, hosts: Hosts) -> str:
    """The self-signed certificate of the kubelet at ``address``, read over a verified session. Raises NodefallError."""
    response = kube.request("GET", "/api/v1/nodes")
    nodes = msgspec.json.decode(response.body, type=_Nodes).items if response.status == 200 else []
    for node in nodes:
        if any(known.address == address for known in (node.status and node.status.addresses) or ()):
            return str(hosts.read(node.metadata.name, "kubelet-certificate"))
    raise NodefallError(f"no node has the address {address}")
