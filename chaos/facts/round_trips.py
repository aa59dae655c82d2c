"""Losses and round trips of pings from the host to an API server and to another node."""

from __future__ import annotations

from chaos.facts._pings import PingFact


class RoundTrips(PingFact):
    """Mapping by kind of peer: ``{"control-plane": {"address": "10.0.0.1", "sent": 10, "received": 9, "duplicates": 0,
    "mean": 0.2, "longest": 0.3}}``.

    ``mean`` and ``longest`` are in seconds, -1 without an answer. The kinds are ``control-plane`` (the first address of
    an API server) and ``nodes`` (the first one of another node), where there is one; or ``cidr`` with ``networks``,
    ``other-zones`` and ``own-zone`` with ``by=zone``.
    """

    name = "round-trips"
    summary = "losses, duplicates and round trips of 10 pings to an API server, and to another node"
    ping_options = "-n -q -c 10 -i 0.2 -W 2"  # pings, seconds between two, and for the last answer
    seconds = 30.0


FACT = RoundTrips()
