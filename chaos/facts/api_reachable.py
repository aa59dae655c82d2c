"""New connections from the host to the API server, by address family."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

CURL_TIMEOUT = 3  # seconds for each address
# curl(1): 7 no connection, 28 timed out; any other exit code means that a server answered.
_UNREACHABLE, _NO_CURL = (7, 28), 127


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
        probes = " & ".join(_probe_command(address, port) for address, port in sorted(endpoints))
        return HostCommand(("sh", "-c", f"{probes} & wait"), timeout=15.0 + CURL_TIMEOUT, sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, bool]:
        if exit_code:
            raise ValueError("the probes did not run")
        reachable: dict[str, bool] = {}
        for line in stdout.splitlines():
            address, _, code = line.rpartition(" ")
            if int(code) == _NO_CURL:
                raise ValueError("there is no curl on the host")
            family = f"ipv{ipaddress.ip_address(address).version}"
            reachable[family] = reachable.get(family, False) or int(code) not in _UNREACHABLE
        return reachable


def _probe_command(address: str, port: int) -> str:
    """Command of one probe. All run at once: in sequence, a partition in between would show in some of them only."""
    host = f"[{address}]" if ":" in address else address
    script = f'curl -s -k --noproxy "*" -o /dev/null -m {CURL_TIMEOUT} https://{host}:{port}/readyz; echo {address} $?'
    return shlex.join(("sh", "-c", script))


FACT = ApiReachable()
