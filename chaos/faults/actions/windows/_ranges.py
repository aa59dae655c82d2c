"""Address ranges for rules of the Windows firewall: what to block without what must stay reachable.

An explicit block rule beats every allow rule, so what must stay reachable is left out of the blocked ranges.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
AddressRange = Annotated[str, Meta(pattern=r"\A[0-9A-Fa-f.:]{2,45}(?:-[0-9A-Fa-f.:]{2,45})?\Z")]
_Interval = tuple[int, int]  # first and last address as numbers

# All unicast addresses. What is left out is no peer, or needed: without fe80::/10 and multicast there is no neighbour
# discovery, without broadcast no DHCP, and then nodefall's own connection breaks too.
EVERYTHING = ("0.0.0.0/0", "::/0")
NEVER_BLOCKED = (
    *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"),
    *("::/127", "fe80::/10", "ff00::/8"),
)


def blocked_ranges(blocked: Iterable[Network], exempt: Iterable[Network]) -> list[str]:
    """Ranges in netsh's notation (``a`` or ``a-b``) of every address in ``blocked`` that is not in ``exempt``.

    Sorted, IPv4 first, without overlaps.
    """
    blocked, exempt = list(blocked), list(exempt)
    found = []
    for version in (4, 6):
        holes = _merge(exempt, version)
        for interval in _merge(blocked, version):
            found += [_format(part, version) for part in _subtract(interval, holes)]
    return found


def split_list(items: Iterable[str], limit: int) -> Iterator[str]:
    """Split ``items`` into comma-separated lists of at most ``limit`` characters."""
    line = ""
    for item in items:
        if line and len(line) + 1 + len(item) > limit:
            yield line
            line = ""
        line = f"{line},{item}" if line else item
    if line:
        yield line


def _merge(networks: list[Network], version: int) -> list[_Interval]:
    """Sorted intervals that do not touch."""
    merged: list[_Interval] = []
    own = [network for network in networks if network.version == version]
    for first, last in sorted((int(network.network_address), int(network.broadcast_address)) for network in own):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def _subtract(interval: _Interval, holes: list[_Interval]) -> Iterator[_Interval]:
    begin, end = interval
    for first, last in holes:
        if last < begin or first > end:
            continue
        if first > begin:
            yield begin, first - 1
        begin = last + 1
    if begin <= end:
        yield begin, end


def _format(interval: _Interval, version: int) -> str:
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    first, last = (str(kind(number)) for number in interval)
    return first if first == last else f"{first}-{last}"
