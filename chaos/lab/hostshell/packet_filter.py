"""Rules of nft(8), as far as nodefall writes them, and their effect on traffic between host and API server."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

from chaos.lab.node.network import Direction, Family

API_PORT = 6443
_DNS_PORT = 53
_EPHEMERAL = 40000  # local port of a client's connection
_SET = r"(?:\{(?P<set>[^{}]+)\}|(?P<one>[^\s{}]+))"
_MATCH = {
    "address": re.compile(rf"(?P<family>ip6?)\s+(?P<end>saddr|daddr)\s+{_SET}\s*"),
    "port": re.compile(rf"(?P<protocol>tcp|udp)\s+(?P<end>sport|dport)\s+{_SET}\s*"),
    "interface": re.compile(r"(?:iifname|oifname)\s+(?:\"[^\"]+\"|!=\s+\{[^{}]*\})\s*"),
    "kind": re.compile(r"meta\s+iifkind\s+\{[^{}]*\}\s*"),
    "length": re.compile(r"meta\s+length\s+>\s+(?P<bytes>\d+)\s*"),
    "icmp": re.compile(r"icmp(?:v6)?\s+(?:type|code)\s+(?:\{[^{}]*\}|\S+)\s*"),
}
_VERDICT = re.compile(r"(?:counter\s+)?(?P<verdict>accept|drop|reject)(?: with tcp reset)?")


class RuleError(ValueError):
    """A rule that is invalid or not simulated."""


@dataclass(frozen=True, slots=True)
class NftRule:
    """A rule with networks by saddr and daddr, and ports by sport and dport.

    ``is_unsimulated``: matches only traffic that the lab does not simulate. ``longer_than``: only packets
    of more bytes, such as pings may be; those of a kubelet's connection are not.
    """

    verdict: str
    networks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ports: dict[str, tuple[int, ...]] = field(default_factory=dict)
    is_unsimulated: bool = False
    longer_than: int = 0

    @property
    def ends_lookups(self) -> bool:
        """Whether packets to DNS servers, whatever their address, are dropped or rejected."""
        return self.verdict != "accept" and not self.networks and _DNS_PORT in self.ports.get("dport", ())

    def matches_ping(self, addresses: dict[str, str], size: int) -> bool:
        """Whether the rule matches a ping of so many bytes, or its answer, between these addresses."""
        return not (self.is_unsimulated or self.ports) and size > self.longer_than and self._is_between(addresses)

    def matches(self, addresses: dict[str, str], ports: dict[str, int]) -> bool:
        """Whether the rule matches a TCP packet with these addresses and ports."""
        if self.is_unsimulated or self.longer_than:
            return False
        return self._is_between(addresses) and all(ports[end] in allowed for end, allowed in self.ports.items())

    def _is_between(self, addresses: dict[str, str]) -> bool:
        for end, networks in self.networks.items():
            address = ipaddress.ip_address(addresses[end])
            if not any(address in ipaddress.ip_network(network) for network in networks):
                return False
        return True


Chains = tuple[tuple[Direction, tuple[NftRule, ...]], ...]


def parse_rule(text: str) -> NftRule:
    """Parse a rule. Raises RuleError."""
    networks: dict[str, tuple[str, ...]] = {}
    ports: dict[str, tuple[int, ...]] = {}
    is_unsimulated, longer_than, rest = False, 0, text.strip()
    while (verdict := _VERDICT.fullmatch(rest)) is None:
        kind, match = next(((k, m) for k, p in _MATCH.items() if (m := p.match(rest))), ("", None))
        if match is None:
            raise RuleError(f"Error: the lab simulates only rules by address, port and interface\n{text}")
        if kind == "address":
            networks[match["end"]] = tuple(_network(match["family"], item) for item in _items(match))
        elif kind == "port":
            ports[match["end"]] = tuple(_port(item) for item in _items(match))
            is_unsimulated = is_unsimulated or match["protocol"] == "udp"
        elif kind == "length":
            longer_than = int(match["bytes"])
        else:
            is_unsimulated = True  # loopback and neighbour discovery: no traffic with the API server
        rest = rest[match.end() :]
    return NftRule(verdict["verdict"], networks, ports, is_unsimulated, longer_than)


def dropped_directions(chains: Chains, family: Family, host: str, server: str, kubelet_port: int = 0) -> set[Direction]:
    """Directions in which packets between the ``host`` and the API ``server`` are dropped.

    ``kubelet_port``: those of a connection from the server to that port, instead of one to the server.
    """
    local, remote = (kubelet_port, _EPHEMERAL) if kubelet_port else (_EPHEMERAL, API_PORT)
    dropped: set[Direction] = set()
    for direction, rules in chains:
        is_outgoing = direction == "out"
        addresses = {"saddr": host if is_outgoing else server, "daddr": server if is_outgoing else host}
        ports = {"sport": local if is_outgoing else remote, "dport": remote if is_outgoing else local}
        matches = [rule for rule in rules if _matches_family(rule, family) and rule.matches(addresses, ports)]
        if matches and matches[0].verdict != "accept":
            dropped.add(direction)
    return dropped


def drops_ping(chains: Chains, host: str, peer: str, size: int) -> bool:
    """Whether a ping of so many bytes from the ``host`` to the ``peer``, or its answer, is dropped."""
    for direction, rules in chains:
        addresses = {"saddr": host, "daddr": peer} if direction == "out" else {"saddr": peer, "daddr": host}
        match = next((rule for rule in rules if rule.matches_ping(addresses, size)), None)
        if match and match.verdict != "accept":
            return True
    return False


def _matches_family(rule: NftRule, family: Family) -> bool:
    version = 4 if family == "ipv4" else 6
    return all(ipaddress.ip_network(n).version == version for networks in rule.networks.values() for n in networks)


def _items(match: re.Match[str]) -> list[str]:
    return [item.strip() for item in (match["set"] or match["one"]).split(",")]


def _network(family: str, text: str) -> str:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise RuleError(f"Error: Could not parse address\n{text}") from error
    if network.version != (4 if family == "ip" else 6):
        raise RuleError(f"Error: Address family mismatch\n{family} {text}")
    return str(network)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise RuleError(f"Error: Could not parse port\n{text}")
    return int(text)
