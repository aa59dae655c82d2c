"""Open connections of the kubelet: control planes that neither its kubeconfig nor a Node object names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.facts.windows._addresses import parse_endpoints
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell

_PORTS = (443, 6443)


class ApiPeers(HostFact):
    """Sorted list of [address, port], as ``[["10.0.0.1", 6443]]``."""

    name = "api-peers"
    summary = "addresses of API servers that the kubelet has open connections to"
    needs = ("kubelet-server",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        port = urlsplit(str(known["kubelet-server"])).port or _PORTS[0]
        return HostCommand(powershell("list-peers", ports=sorted({port, *_PORTS})))

    def parse(self, stdout: str, exit_code: int) -> list[list[str | int]]:
        if exit_code:
            raise ValueError("the connections were not listed")
        return [[str(address), port] for address, port in parse_endpoints(stdout)]


FACT = ApiPeers()
