"""The addresses behind the name of the API server, as the host resolves it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class ServerAddresses(HostFact):
    """Sorted addresses; loopback is left out, as it is a balancer on the host (k3s) and not a control plane."""

    name = "server-addresses"
    summary = "addresses of the API server that the kubelet's kubeconfig names"
    needs = ("kubelet-server",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        host = urlsplit(str(known["kubelet-server"])).hostname
        if not host:
            raise ValueError(f"{known['kubelet-server']} has no host")
        return HostCommand(("getent", "ahosts", host), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code:
            raise ValueError("its name is not resolved")
        found = {ipaddress.ip_address(line.split()[0].split("%")[0]) for line in stdout.splitlines() if line.strip()}
        return sorted(str(_unmapped_address(address)) for address in found if not address.is_loopback)


def _unmapped_address(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """getent prints mapped addresses (::ffff:192.0.2.1) for some hosts files."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


FACT = ServerAddresses()
