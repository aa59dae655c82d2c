"""Open connections of the kubelet: control planes that neither its kubeconfig nor a Node object names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_KUBELETS = ("kubelet", "kubelite", "k3s", "rke2", "k0s")
_PEER = re.compile(r"(?P<address>\S+):(?P<port>\d+)\s+users:\(\(\"(?P<program>[^\"]+)\"")
_PORTS = (443, 6443)


class ApiPeers(HostFact):
    """Sorted list of [address, port], ``[["10.0.0.1", 6443]]``: a load balancer on the host (k3s) has another port."""

    name = "api-peers"
    summary = "addresses of API servers that the kubelet has open connections to"
    needs = ("kubelet-server",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        port = urlsplit(str(known["kubelet-server"])).port or _PORTS[0]
        ports = sorted({port, *_PORTS})
        ports_filter = " or ".join(f"dport = :{number}" for number in ports)
        return HostCommand(("ss", "-Htnp", "state", "established", f"( {ports_filter} )"))

    def parse(self, stdout: str, exit_code: int) -> list[list[str | int]]:
        if exit_code:
            raise ValueError("ss did not answer")
        peers = set()
        for line in stdout.splitlines():
            match = _PEER.search(line)
            if match and match["program"].startswith(_KUBELETS):
                address = ipaddress.ip_address(match["address"].strip("[]").removeprefix("::ffff:").split("%")[0])
                if not address.is_loopback:
                    peers.add((str(address), int(match["port"])))
        return [list(peer) for peer in sorted(peers)]


FACT = ApiPeers()
