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

# Not [Environment]::TickCount: its 32 bits overflow after 25 days of uptime.
_TICKS, _FREQUENCY = "[Diagnostics.Stopwatch]::GetTimestamp()", "[Diagnostics.Stopwatch]::Frequency"


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
        return HostCommand(powershell(_probe_script(sorted(endpoints))), timeout=30.0 + CONNECT_TIMEOUT)

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


def _probe_script(endpoints: list[tuple[str, int]]) -> str:
    """All attempts begin at once: in sequence, a partition in between would show in some of them only.

    A TcpClient without an address family is one for IPv4. Wait raises an error for a refused connection; nothing else
    is in the try block, as another error would pass for an address that does not answer.
    """
    begin, end = [], []
    for number, (address, port) in enumerate(endpoints):
        family = "InterNetworkV6" if ipaddress.ip_address(address).version == 6 else "InterNetwork"
        begin.append(f"$c{number}=New-Object Net.Sockets.TcpClient('{family}')")
        begin.append(f"$t{number}=$c{number}.ConnectAsync('{address}',{int(port)})")
        end.append(f"$w=[Math]::Max(1,[int](($e-{_TICKS})*1000/{_FREQUENCY}))")
        end.append(f"try{{$r=$t{number}.Wait($w)}}catch{{$r=$false}}")
        end.append(f'"{address} $r"')
    return ";".join([*begin, f"$e={_TICKS}+{CONNECT_TIMEOUT}*{_FREQUENCY}", *end, "exit 0"])


FACT = ApiReachable()
