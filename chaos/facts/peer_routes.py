"""Network interfaces through which the host reaches API servers, other nodes and networks."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Self

from chaos.facts._pings import PeersParams, peer_facts, peers_by_kind, server_addresses
from chaos.facts._rows import json_rows
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class PeerRoutes(HostFact):
    """Mapping ``{"10.0.0.1": "eth0"}`` of addresses to interfaces, without the host's own and those without a route."""

    name = "peer-routes"
    summary = "interfaces through which the host reaches API servers and other nodes, or networks"
    needs = peer_facts(None)
    params = PeersParams
    options: PeersParams | None

    def bind(self, params: Mapping[str, str]) -> Self:
        bound = super().bind(params)
        bound.needs = peer_facts(bound.options)
        return bound

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        peers = peers_by_kind(known, self.options)
        servers = server_addresses(known) if self.options and self.options.by else []
        found = sorted({address for addresses in (*peers.values(), servers) for address in addresses})
        lines = "".join(f"route get {ipaddress.ip_address(address)}\n" for address in found)
        return HostCommand(("ip", "-j", "-force", "-batch", "-"), stdin=lines, accept=(0, 1, 2), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, str]:
        rows = [row for line in stdout.splitlines() for row in json_rows(line)]
        if exit_code and not rows:
            raise ValueError("ip did not print any route (package iproute2)")
        return {str(row.get("dst")): str(row["dev"]) for row in rows if "dev" in row and row.get("type") != "local"}


FACT = PeerRoutes()
