"""The packet filter rules of a partition for nft(8): one separate table, loaded and deleted as a whole.

Chains hook in at the usual filter priority, after destination NAT, so that connections to a Service's address are
dropped too. A drop is final whatever other tables accept. There is no rule for established connections, so existing
connections are dropped together with new ones.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator

TABLE = "inet nodefall"
_HOOKS = {"in": ("input", "saddr", "dport"), "out": ("output", "daddr", "dport")}
# Without neighbour discovery an IPv6 connection of nodefall breaks as well.
_NEIGHBOUR_DISCOVERY = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert } accept"
# Without these nodefall's connection hangs where the path's MTU is smaller than that of the host's link.
_PATH_MTU_DISCOVERY = (
    "icmpv6 type packet-too-big accept",
    "icmp type destination-unreachable icmp code frag-needed accept",
)


@dataclass(frozen=True, slots=True)
class BlockRule:
    """Which packets to drop: those of ``peers`` (networks in CIDR), those to ``ports``, or all if both are empty.

    ``directions`` are in and out, as the host sees them. ``host``: traffic of the host itself; ``pods``: traffic
    forwarded to and from pods. ``own_networks``: the node's pod networks, never dropped. ``exempt_connection``: address
    of the peer and local port of nodefall's connection. ``longer_than``: only packets of more bytes, 0 for all.
    """

    peers: Sequence[str] = ()
    ports: Sequence[int] = ()
    directions: Sequence[str] = ("in", "out")
    host: bool = True
    pods: bool = True
    own_networks: Sequence[str] = field(default_factory=tuple)
    exempt_connection: tuple[str, int] | None = None
    longer_than: int = 0


def ruleset(rule: BlockRule) -> str:
    """The table as text; nft loads it atomically."""
    chains = []
    for direction in rule.directions if rule.host else ():
        hook, end, _ = _HOOKS[direction]
        chains.append(filter_chain(direction, hook, [*_exempt_rules(rule, direction), *_drop_rules(rule, (end,))]))
    if rule.pods:
        ends = tuple(_HOOKS[direction][1] for direction in rule.directions)
        chains.append(filter_chain("pods", "forward", [*_own_network_rules(rule), *_drop_rules(rule, ends)]))
    return f"table {TABLE} {{\n{''.join(chains)}}}\n"


def filter_chain(name: str, hook: str, rules: Iterable[str], priority: int = 0) -> str:
    """One chain of the table, as text."""
    lines = "".join(f"\t\t{text}\n" for text in rules)
    return f"\tchain {name} {{\n\t\ttype filter hook {hook} priority {priority}; policy accept;\n{lines}\t}}\n"


def _exempt_rules(rule: BlockRule, direction: str) -> list[str]:
    """Accept the node's traffic with itself and its own pods, nodefall's connection, and neighbour discovery.

    A dropped network or port may also be the node's own, or the one of nodefall's connection.
    """
    end = "saddr" if direction == "in" else "daddr"
    rules = [f'{"iifname" if direction == "in" else "oifname"} "lo" accept', _NEIGHBOUR_DISCOVERY]
    if rule.exempt_connection:
        address, port = rule.exempt_connection
        side = "dport" if direction == "in" else "sport"
        rules.append(f"{_family(address)} {end} {address} tcp {side} {port} accept")
        rules += _PATH_MTU_DISCOVERY if direction == "in" else ()
    return rules + [f"{_family(network)} {end} {network} accept" for network in rule.own_networks]


def _own_network_rules(rule: BlockRule) -> list[str]:
    return [
        f"{_family(network)} saddr {network} {_family(network)} daddr {network} accept" for network in rule.own_networks
    ]


def _drop_rules(rule: BlockRule, ends: Sequence[str]) -> list[str]:
    verdict = f"meta length > {rule.longer_than} counter drop" if rule.longer_than else "counter drop"
    if rule.ports:
        numbers = ", ".join(str(port) for port in sorted(rule.ports))
        return [f"{protocol} dport {{ {numbers} }} {verdict}" for protocol in ("tcp", "udp")]
    if not rule.peers:
        return [verdict]
    rules = []
    for family in ("ip", "ip6"):
        networks = sorted(network for network in rule.peers if _family(network) == family)
        if networks:
            rules += [f"{family} {end} {{ {', '.join(networks)} }} {verdict}" for end in ends]
    return rules


def parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """A network in CIDR. Raises ValueError, also for a zone: Python accepts any text in it, unsafe for nft."""
    if "%" in text:
        raise ValueError(f"{text!r} has a zone (%), which nft rules do not allow")
    return ipaddress.ip_network(text, strict=False)


def _check_network(text: str) -> str:
    parse_network(text)
    return text


Network = Annotated[str, AfterValidator(_check_network)]


def _family(text: str) -> str:
    return "ip" if parse_network(text).version == 4 else "ip6"


def merge_networks(addresses: Iterable[str]) -> list[str]:
    """Addresses and networks without those inside another: nft rejects overlapping sets. Raises ValueError."""
    networks = [parse_network(text) for text in addresses]
    v4 = [network for network in networks if isinstance(network, ipaddress.IPv4Network)]
    v6 = [network for network in networks if isinstance(network, ipaddress.IPv6Network)]
    merged = [str(network).removesuffix("/32") for network in ipaddress.collapse_addresses(v4)]
    return merged + [str(network).removesuffix("/128") for network in ipaddress.collapse_addresses(v6)]


def addresses_within(addresses: Iterable[str], networks: Iterable[str]) -> list[str]:
    """Those of the addresses that are in a network. Raises ValueError.

    They are looked up by their first bits: of a large cluster there are thousands of both.
    """
    prefixes = {_prefix(net.network_address, net.prefixlen) for net in map(parse_network, networks)}
    lengths = {(version, length) for version, length, _ in prefixes}
    found = []
    for text in addresses:
        address = ipaddress.ip_address(text)
        own = {_prefix(address, length) for version, length in lengths if version == address.version}
        found += [] if own.isdisjoint(prefixes) else [text]
    return found


def _prefix(address: ipaddress.IPv4Address | ipaddress.IPv6Address, length: int) -> tuple[int, int, int]:
    """The IP version, the number of leading bits, and these bits of an address."""
    return address.version, length, int(address) >> (address.max_prefixlen - length)
