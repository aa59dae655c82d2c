"""Addresses as Windows prints them."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> Address:
    """The address without its zone; IPv4 for one that is mapped to IPv6. Raises ValueError."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def parse_endpoints(stdout: str) -> list[tuple[Address, int]]:
    """Lines ``ADDRESS PORT``, sorted, each once, without loopback. Raises ValueError."""
    found = set()
    for line in stdout.splitlines():
        if line.strip():
            address, _, port = line.strip().partition(" ")
            found.add((parse_address(address), int(port)))
    return sorted((pair for pair in found if not pair[0].is_loopback), key=lambda pair: (str(pair[0]), pair[1]))
