"""Whom a kubelet's own port is, where nobody has signed its certificate: its host tells."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from chaos.engine.hosts import Hosts
from chaos.model.errors import NodefallError
from chaos.model.kube import Node
from chaos.model.ports import KubeApi


class _Nodes(Struct):
    items: list[Node] = []


def certificate_at(address: str, kube: KubeApi, hosts: Hosts) -> str:
    """The one that the kubelet at ``address`` made, read over a session that is verified. Raises NodefallError."""
    response = kube.request("GET", "/api/v1/nodes")
    nodes = msgspec.json.decode(response.body, type=_Nodes).items if response.status == 200 else []
    for node in nodes:
        if any(known.address == address for known in (node.status and node.status.addresses) or ()):
            return str(hosts.read(node.metadata.name, "kubelet-certificate"))
    raise NodefallError(f"no node has the address {address}")
