"""New connections from the host to the API server, by address family."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell

CONNECT_TIMEOUT = 3  # seconds for all addresses together, as they are tried at once


class ApiReachable(HostFact):
    """Mapping ``{"ipv4": true, "ipv6": false}`` of the families with a known address; true if an address answers."""

    name = "api-reachable"
    summary = "whether new connections to the API server succeed, by address family"
    needs = ("kubelet-server", "server-addresses", "api-peers")

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        port = urlsplit(str(known["kubelet-server"])).port or 443
        endpoints = {*((address, port) for address in known["server-addresses"]), *map(tuple, known["api-peers"])}
        if not endpoints:
            raise ValueError("no address of an API server is known on the host")
        probes = [_probe(address, int(port)) for address, port in sorted(endpoints)]
        script = powershell("probe-endpoints", endpoints=probes, seconds=CONNECT_TIMEOUT)
        return HostCommand(script, timeout=30.0 + CONNECT_TIMEOUT)

    def parse(self, stdout: str, exit_code: int) -> dict[str, bool]:
        if exit_code:
            raise ValueError("the probes did not run")
        reachable: dict[str, bool] = {}
        for line in stdout.splitlines():
            address, _, word = line.strip().partition(" ")
            if word not in ("True", "False"):
                raise ValueError(f"a probe printed {line[:80]!r}")
            family = f"ipv{ipaddress.ip_address(address).version}"
            reachable[family] = reachable.get(family, False) or word == "True"
        if not reachable:
            raise ValueError("the probes did not run")
        return reachable


def _probe(address: str, port: int) -> dict[str, str | int]:
    family = "InterNetworkV6" if ipaddress.ip_address(address).version == 6 else "InterNetwork"
    return {"address": address, "family": family, "port": port}


FACT = ApiReachable()
