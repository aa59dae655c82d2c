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
# The errors of both cmdlets mean that there is none; the last one would end in exit code 1.
_SCRIPT = (
    "$p=@(Get-Process -Name kubelet -ErrorAction SilentlyContinue|%{{$_.Id}});"
    "Get-NetTCPConnection -State Established -RemotePort {ports} -ErrorAction SilentlyContinue|"
    '?{{$p -contains $_.OwningProcess}}|%{{"$($_.RemoteAddress) $($_.RemotePort)"}};exit 0'
)


class ApiPeers(HostFact):
    """Sorted list of [address, port], as ``[["10.0.0.1", 6443]]``."""

    name = "api-peers"
    summary = "addresses of API servers that the kubelet has open connections to"
    needs = ("kubelet-server",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        port = urlsplit(str(known["kubelet-server"])).port or _PORTS[0]
        ports = ",".join(str(number) for number in sorted({port, *_PORTS}))
        return HostCommand(powershell(_SCRIPT.format(ports=ports)))

    def parse(self, stdout: str, exit_code: int) -> list[list[str | int]]:
        if exit_code:
            raise ValueError("the connections were not listed")
        return [[str(address), port] for address, port in parse_endpoints(stdout)]


FACT = ApiPeers()
