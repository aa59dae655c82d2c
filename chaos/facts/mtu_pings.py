"""Pings of a given size and of one byte more from the host, which must not be fragmented."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chaos.facts._pings import PingFact, PingParams, choose_peers, count_answers
from chaos.model.command import HostCommand

_HEADERS = {4: 28, 6: 48}  # of IP and ICMP
_PINGS = "ping -n -q -M do -c 3 -i 0.2 -W 1 -s"


class MtuPingsParams(PingParams):
    size: int = Field(ge=576, le=9000, description="bytes, with headers of IP")


class MtuPings(PingFact):
    """Mapping by kind of peer, as ``round-trips``: ``{"nodes": {"address": "10.0.0.2", "small": 3, "large": 0}}``.

    ``small``: how many of 3 pings of ``size`` bytes were answered; ``large``: of one byte more.
    """

    name = "mtu-pings"
    summary = "whether packets of a size reach an API server and another node, and those of one byte more"
    params: type[PingParams] = MtuPingsParams
    options: MtuPingsParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        peers = choose_peers(known, self.options)
        script = "; ".join(self._script(kind, address) for kind, address in peers.items())
        return HostCommand(("sh", "-c", script), timeout=30.0)

    def parse(self, stdout: str, exit_code: int) -> dict[str, dict[str, Any]]:  # noqa: ARG002 - 1 if one is lost
        found = {}
        for (kind, address), counts in count_answers(stdout):
            if len(counts) != 2:
                raise ValueError("ping did not answer twice (package iputils-ping)")
            found[kind] = {"address": address, "small": counts[0], "large": counts[1]}
        return found

    def _script(self, kind: str, address: str) -> str:
        size = self.options.size - _HEADERS[ipaddress.ip_address(address).version]
        return f"echo peer {kind} {address}; {_PINGS} {size} {address}; {_PINGS} {size + 1} {address}"


FACT = MtuPings()
