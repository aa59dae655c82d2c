"""Addresses of the API server's name, as resolved by the host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.machine_address import plain_address
from chaos.model.windows import powershell

_HOST = re.compile(r"[A-Za-z0-9_.:-]{1,253}")  # of a name or an address


class ServerAddresses(HostFact):
    """Sorted list of addresses, without loopback: that is a load balancer on the host and not a control plane."""

    name = "server-addresses"
    summary = "addresses of the API server that the kubelet's kubeconfig names"
    needs = ("kubelet-server",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        host = urlsplit(str(known["kubelet-server"])).hostname
        if not host or not _HOST.fullmatch(host):
            raise ValueError(f"{known['kubelet-server']} has no host")
        return HostCommand(powershell("resolve-name", name=host))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code:
            raise ValueError("the name of the API server is not resolved")
        addresses = map(plain_address, stdout.split())
        return sorted({str(address) for address in addresses if not address.is_loopback})


FACT = ServerAddresses()
