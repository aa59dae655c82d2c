"""Addresses of machines that change: an engine may give a container another address at each start. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface


def plain_address(text: str) -> IPv4Address | IPv6Address:
    """The address without its zone; IPv4 for one that is mapped to IPv6. Raises ValueError."""
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def moved_to(address: str, interfaces: Iterable[str]) -> str:
    """The machine's present address if ``address`` is a former one, "" if it is not known to be.

    ``interfaces`` are the present addresses with their networks, as ``172.18.0.5/16``. An address outside of these
    networks, such as that of a tunnel or a forwarded port, and a name may still be right.
    """
    try:
        known = ip_address(address)
    except ValueError:
        return ""
    present = [ip_interface(text) for text in interfaces]
    if any(each.ip == known for each in present):
        return ""
    return next((str(each.ip) for each in present if known in each.network), "")
