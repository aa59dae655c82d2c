"""Addresses of the host: there may be more than in its Node object, such as that of the API server."""

from __future__ import annotations

import ipaddress

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class HostAddresses(HostFact):
    """Sorted list of addresses, as ``["10.0.0.11", "fd00::11"]``, without loopback and link-local ones."""

    name = "host-addresses"
    summary = "addresses of the host's interfaces"
    command = HostCommand(("hostname", "-I"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code:
            raise ValueError("hostname failed")
        return sorted(str(ipaddress.ip_address(word)) for word in stdout.split())


FACT = HostAddresses()
