"""The rules of a partition, as text for nft(8): one table of our own, dropped as a whole, nothing else touched.

Rules stand at the filter hooks' usual priority, after destination NAT, so that connections to a Service's address are
cut too. A drop is final whatever other tables accept, and there is no rule for established connections: open ones are
cut with the new ones.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

TABLE = "inet nodefall"
_HOOKS = {"in": ("input", "saddr", "dport"), "out": ("output", "daddr", "dport")}
# Without neighbour discovery an IPv6 line to us is dead as well.
_NEIGHBOUR_DISCOVERY = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert } accept"
# Without these our line hangs where the path takes smaller packets than the host's link.
_PATH_MTU_DISCOVERY = (
    "icmpv6 type packet-too-big accept",
    "icmp type destination-unreachable icmp code frag-needed accept",
)


@dataclass(frozen=True, slots=True)
class BlockRule:
    """What to drop: packets of ``peers`` (networks in CIDR), of ``ports``, or everything if both are empty.

    ``ways`` are in and out, as the host sees it; ``host``: of the host itself; ``pods``: forwarded to and from pods.
    ``own``: the node's own pod networks, from which it is never cut. ``spared``: address and local port of our line.
    """

    peers: Sequence[str] = ()
    ports: Sequence[int] = ()
    directions: Sequence[str] = ("in", "out")
    host: bool = True
    pods: bool = True
    own_networks: Sequence[str] = field(default_factory=tuple)
    exempt_connection: tuple[str, int] | None = None


def ruleset(cut: BlockRule) -> str:
    """The table; nft loads it whole or not at all."""
    chains = []
    for way in cut.directions if cut.host else ():
        hook, end, _ = _HOOKS[way]
        chains.append(_chain(way, hook, [*_exempt_rules(cut, way), *_drop_rules(cut, (end,))]))
    if cut.pods:
        ends = tuple(_HOOKS[way][1] for way in cut.directions)
        chains.append(_chain("pods", "forward", [*_own_network_rules(cut), *_drop_rules(cut, ends)]))
    return f"table {TABLE} {{\n{''.join(chains)}}}\n"


def _chain(name: str, hook: str, rules: Iterable[str]) -> str:
    lines = "".join(f"\t\t{rule}\n" for rule in rules)
    return f"\tchain {name} {{\n\t\ttype filter hook {hook} priority 0; policy accept;\n{lines}\t}}\n"


def _exempt_rules(cut: BlockRule, way: str) -> list[str]:
    """What stays whatever is cut: the node with itself and its own pods, our line, and neighbour discovery.

    A network or a port that is cut may be the node's own as well, or the one in which we are.
    """
    end = "saddr" if way == "in" else "daddr"
    rules = [f'{"iifname" if way == "in" else "oifname"} "lo" accept', _NEIGHBOUR_DISCOVERY]
    if cut.exempt_connection:
        address, port = cut.exempt_connection
        side = "dport" if way == "in" else "sport"
        rules.append(f"{_family(address)} {end} {address} tcp {side} {port} accept")
        rules += _PATH_MTU_DISCOVERY if way == "in" else ()
    return rules + [f"{_family(network)} {end} {network} accept" for network in cut.own_networks]


def _own_network_rules(cut: BlockRule) -> list[str]:
    return [
        f"{_family(network)} saddr {network} {_family(network)} daddr {network} accept" for network in cut.own_networks
    ]


def _drop_rules(cut: BlockRule, ends: Sequence[str]) -> list[str]:
    if cut.ports:
        numbers = ", ".join(str(port) for port in sorted(cut.ports))
        return [f"{protocol} dport {{ {numbers} }} counter drop" for protocol in ("tcp", "udp")]
    if not cut.peers:
        return ["counter drop"]
    rules = []
    for family in ("ip", "ip6"):
        networks = sorted(network for network in cut.peers if _family(network) == family)
        if networks:
            rules += [f"{family} {end} {{ {', '.join(networks)} }} counter drop" for end in ends]
    return rules


def parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Raises ValueError, also where there is a zone: Python takes any text for one, and rules are made of this."""
    if "%" in text:
        raise ValueError(f"{text!r} has a zone (%), which no rule can have")
    return ipaddress.ip_network(text, strict=False)


def _family(text: str) -> str:
    return "ip" if parse_network(text).version == 4 else "ip6"


def merge_networks(addresses: Iterable[str]) -> list[str]:
    """Addresses and networks without those that others contain: nft refuses sets that overlap. Raises ValueError."""
    found = [parse_network(text) for text in addresses]
    v4 = [network for network in found if isinstance(network, ipaddress.IPv4Network)]
    v6 = [network for network in found if isinstance(network, ipaddress.IPv6Network)]
    lone = [str(network).removesuffix("/32") for network in ipaddress.collapse_addresses(v4)]
    return lone + [str(network).removesuffix("/128") for network in ipaddress.collapse_addresses(v6)]
