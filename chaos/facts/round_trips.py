"""Losses and round trips of pings from the host to an API server and to another node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chaos.facts._nodes import NODES, node_addresses
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_COUNT, _INTERVAL, _WAIT = 10, 0.2, 2  # pings, seconds between two, and for the last answer
_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+) (?:packets )?received")
_TIMES = re.compile(r"= [\d.]+/([\d.]+)/")


class RoundTrips(HostFact):
    """Mapping by kind of peer: ``{"control-plane": {"address": "10.0.0.1", "sent": 10, "received": 9, "mean": 0.2}}``.

    ``mean`` is in seconds, -1 without an answer. The kinds are ``control-plane`` (the first address of an API server)
    and ``nodes`` (the first one of another node), where there is one.
    """

    name = "round-trips"
    summary = "losses and round trips of 10 pings to an API server, and to another node"
    needs = ("server-addresses", "api-peers", NODES, "peer-routes")

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        routes = known["peer-routes"]
        servers = [*known["server-addresses"], *(address for address, _ in known["api-peers"])]
        peers = {"control-plane": servers, "nodes": node_addresses(known[NODES])}
        chosen = {kind: next((a for a in some if a in routes), "") for kind, some in peers.items()}
        if not any(chosen.values()):
            raise ValueError("the host has no route to an API server or another node")
        script = "; ".join(_script(kind, address) for kind, address in chosen.items() if address)
        return HostCommand(("sh", "-c", script), timeout=30.0)

    def parse(self, stdout: str, exit_code: int) -> dict[str, dict[str, Any]]:  # noqa: ARG002 - 1 if all are lost
        found: dict[str, dict[str, Any]] = {}
        for part in stdout.split("peer ")[1:]:
            kind, address = part.split(maxsplit=2)[:2]
            counts, times = _COUNTS.search(part), _TIMES.search(part)
            if counts is None:
                raise ValueError("ping did not answer (package iputils-ping)")
            mean = round(float(times[1]) / 1000, 6) if times else -1.0
            found[kind] = {"address": address, "sent": int(counts[1]), "received": int(counts[2]), "mean": mean}
        if not found:
            raise ValueError("the pings did not run")
        return found


def _script(kind: str, address: str) -> str:
    return f"echo peer {kind} {address}; ping -n -q -c {_COUNT} -i {_INTERVAL} -W {_WAIT} {address}"


FACT = RoundTrips()
