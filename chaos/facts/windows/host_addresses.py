"""Addresses of the host, also those that are not in its Node object."""

from __future__ import annotations

import ipaddress

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell


class HostAddresses(HostFact):
    """Sorted list of addresses, as ``["10.0.0.11", "fd00::11"]``, without loopback and link-local ones."""

    name = "host-addresses"
    summary = "addresses of the host's interfaces"
    command = HostCommand(powershell("list-addresses"))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code or not stdout.strip():
            raise ValueError("Get-NetIPAddress failed")
        found = {ipaddress.ip_address(word.partition("%")[0]) for word in stdout.split()}
        return sorted(str(address) for address in found if not (address.is_loopback or address.is_link_local))


FACT = HostAddresses()
