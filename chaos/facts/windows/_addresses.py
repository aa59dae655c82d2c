"""Addresses as Windows prints them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from chaos.model.machine_address import plain_address

Address = IPv4Address | IPv6Address


def parse_endpoints(stdout: str) -> list[tuple[Address, int]]:
    """Lines ``ADDRESS PORT``, sorted, each once, without loopback. Raises ValueError."""
    found = set()
    for line in stdout.splitlines():
        if line.strip():
            address, _, port = line.strip().partition(" ")
            found.add((plain_address(address), int(port)))
    return sorted((pair for pair in found if not pair[0].is_loopback), key=lambda pair: (str(pair[0]), pair[1]))
