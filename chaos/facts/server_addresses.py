"""Addresses of the API server's name, as resolved by the host."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class ServerAddresses(HostFact):
    """Sorted list of addresses, without loopback: that is a load balancer on the host (k3s) and not a control plane."""

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
            raise ValueError("the name of the API server is not resolved")
        addresses = {
            ipaddress.ip_address(line.split()[0].split("%")[0]) for line in stdout.splitlines() if line.strip()
        }
        return sorted(str(_unmapped_address(address)) for address in addresses if not address.is_loopback)


def _unmapped_address(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """getent prints mapped addresses (::ffff:192.0.2.1) for some hosts files."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


FACT = ServerAddresses()
