"""Peers of the host: routes to them, and pings.

Addresses and zones of Node objects, for facts that need them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from chaos.core.api_fact import PseudoFact, field, labels_fact, object_fact
from chaos.core.command import HostCommand
from chaos.core.fact import FactRef, Known, host_fact
from chaos.core.field_types import Model
from chaos.core.labels import ZONE_LABEL
from chaos.faults.readings.interfaces import json_rows

NODES = object_fact("/api/v1/nodes", "/items")


def node_addresses(nodes: Any) -> list[str]:
    """Internal and external addresses of Nodes."""
    return [
        address["address"]
        for node in nodes or ()
        for address in node.get("status", {}).get("addresses") or ()
        if address["type"] in ("InternalIP", "ExternalIP")
    ]


def label_of(node: Any, key: str) -> str:
    """Value of a label of a Node, "" without it."""
    return str((field(node, "/metadata/labels") or {}).get(key) or "")


def in_other_zones(nodes: Iterable[dict[str, Any]], zone: str) -> list[dict[str, Any]]:
    """The Nodes that are in a zone other than ``zone``."""
    return [node for node in nodes if label_of(node, ZONE_LABEL) not in ("", zone)]


_OWN_ZONE, _OWN_NAME = labels_fact((ZONE_LABEL,)), str(PseudoFact.NODE_NAME)
_PEERS = ("server-addresses", "api-peers", NODES)
_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+) (?:packets )?received(?:, \+(\d+) duplicates)?")
_TIMES = re.compile(r"= [\d.]+/([\d.]+)/([\d.]+)")


class PeersParams(Model):
    """The peers."""

    networks: str = Field(
        "", description="Networks, separated by commas, whose peers are pinged instead of API servers and nodes."
    )
    by: Literal["zone"] | None = Field(None, description="zone: ping nodes in other zones and in the host's own zone.")

    @field_validator("networks")
    @classmethod
    def _validate_networks(cls, value: str) -> str:
        for text in value.split(",") if value else ():
            if "%" in text:
                raise ValueError(f"{text!r} has a zone (%)")
            ipaddress.ip_network(text, strict=False)
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.networks and self.by:
            raise ValueError("networks and by exclude each other")
        return self


class PingParams(PeersParams):
    """The peers, and which of them to ping."""

    family: Literal["ipv4", "ipv6"] | None = Field(None, description="Only addresses of this family.")


def peer_facts(options: PeersParams | None) -> tuple[str, ...]:
    """References of the facts that list the peers."""
    return (*_PEERS, *((_OWN_ZONE,) if options and options.by else ()), _OWN_NAME)


def peers_by_kind(known: Mapping[str, Any], options: PeersParams | None) -> dict[str, list[str]]:
    """Addresses to ping by kind of peer; for networks, the known peers in them and the first address of each.

    Raises ValueError for a node without a zone.
    """
    if options and options.by:
        return _peers_by_zone(known[NODES] or [], known[_OWN_ZONE] or {}, known[_OWN_NAME])
    servers = server_addresses(known)
    own = _own_addresses(known[NODES] or [], known[_OWN_NAME])
    nodes = [address for address in node_addresses(known[NODES]) if address not in own]
    if not options or not options.networks:
        return {"control-plane": servers, "nodes": nodes}
    found: list[str] = []
    for network in (ipaddress.ip_network(text, strict=False) for text in options.networks.split(",")):
        found += [address for address in (*servers, *nodes) if ipaddress.ip_address(address) in network]
        found.append(str(network[0] if network.num_addresses == 1 else network[1]))
    return {"cidr": found}


def server_addresses(known: Mapping[str, Any]) -> list[str]:
    """Addresses of API servers."""
    return [*known["server-addresses"], *(address for address, _ in known["api-peers"])]


def _peers_by_zone(nodes: Sequence[dict[str, Any]], labels: Mapping[str, str], name: str) -> dict[str, list[str]]:
    """``labels``, ``name``: of the host's own Node. Shared addresses, such as a virtual one, are not peers."""
    zone = labels.get(ZONE_LABEL, "")
    if not zone:
        raise ValueError(f"the node has no label {ZONE_LABEL}")
    own = _own_addresses(nodes, name)
    far = node_addresses(in_other_zones(nodes, zone))
    near = node_addresses(node for node in nodes if label_of(node, ZONE_LABEL) == zone)
    return {
        "other-zones": [address for address in far if address not in own],
        "own-zone": [address for address in near if address not in own],
    }


def _own_addresses(nodes: Sequence[dict[str, Any]], name: str) -> set[str]:
    """Addresses of the host's own Node, including an external one, for which a NAT may answer."""
    return {*node_addresses(node for node in nodes if field(node, "/metadata/name") == name)}


def _routes_reference(options: PingParams | None) -> str:
    """Reference of the fact with the routes to the peers."""
    given = {"networks": options.networks, "by": options.by} if options else {}
    return str(FactRef("peer-routes", {name: text for name, text in given.items() if text}))


def choose_peers(known: Mapping[str, Any], options: PingParams | None) -> dict[str, str]:
    """The first address of each kind to which there is a route. Raises ValueError if there is none at all."""
    routes = known[_routes_reference(options)]
    family = options.family if options else None
    found = {}
    for kind, addresses in peers_by_kind(known, options).items():
        fitting = (a for a in addresses if a in routes and family in (None, f"ipv{ipaddress.ip_address(a).version}"))
        if address := next(fitting, ""):
            found[kind] = address
    if not found:
        raise ValueError("the host has no route to an API server, another node or one of the networks")
    return found


def _ping_script(peers: Mapping[str, str], options: str) -> str:
    """A script for sh(1) whose output :func:`_parse_pings` reads."""
    return "; ".join(f"echo peer {kind} {address}; ping {options} {address}" for kind, address in peers.items())


def _parse_pings(stdout: str) -> dict[str, dict[str, Any]]:
    """Parse pings by kind of peer; ``mean`` and ``longest`` in seconds, -1 without an answer. Raises ValueError."""
    found: dict[str, dict[str, Any]] = {}
    for (kind, address), part in _parts(stdout):
        counts, times = _COUNTS.search(part), _TIMES.search(part)
        if counts is None:
            raise ValueError("ping did not answer (package iputils-ping)")
        mean, longest = (round(float(text) / 1000, 6) for text in times.groups()) if times else (-1.0, -1.0)
        found[kind] = {
            "address": address,
            "sent": int(counts[1]),
            "received": int(counts[2]),
            "duplicates": int(counts[3] or 0),
            "mean": mean,
            "longest": longest,
        }
    return found


def count_answers(stdout: str) -> list[tuple[tuple[str, str], list[int]]]:
    """The kind and address of each peer, and the number of answers in each of its ping(8) runs. Raises ValueError."""
    return [(peer, [int(match[2]) for match in _COUNTS.finditer(part)]) for peer, part in _parts(stdout)]


def _parts(stdout: str) -> list[tuple[tuple[str, str], str]]:
    """The kind and address of each peer, and its output. Raises ValueError."""
    found = []
    for part in stdout.split("peer ")[1:]:
        kind, address = part.split(maxsplit=2)[:2]
        found.append(((kind, address), part))
    if not found:
        raise ValueError("the pings did not run")
    return found


def _peer_routes_command(known: Known, options: PeersParams) -> HostCommand:
    peers = peers_by_kind(known, options)
    servers = server_addresses(known) if options and options.by else []
    found = sorted({address for addresses in (*peers.values(), servers) for address in addresses})
    lines = "".join(f"route get {ipaddress.ip_address(address)}\n" for address in found)
    return HostCommand(("ip", "-j", "-force", "-batch", "-"), stdin=lines, accept=(0, 1, 2), sudo=False)


@host_fact(
    "peer-routes",
    "interfaces through which the host reaches API servers and other nodes, or networks",
    _peer_routes_command,
    needs=peer_facts,
    params=PeersParams,
)
def peer_routes(stdout: str, exit_code: int, _options: PeersParams) -> dict[str, str]:
    """Mapping ``{"10.0.0.1": "eth0"}`` of addresses to interfaces, without the host's own and those without a route."""
    rows = [row for line in stdout.splitlines() for row in json_rows(line)]
    if exit_code and not rows:
        raise ValueError("ip did not print any route (package iproute2)")
    return {str(row.get("dst")): str(row["dev"]) for row in rows if "dev" in row and row.get("type") != "local"}


def _ping_needs(options: PingParams | None) -> tuple[str, ...]:
    return (*peer_facts(options), _routes_reference(options))


def _ping(options: str, seconds: float) -> Callable[[Known, PingParams], HostCommand]:
    """The ping(8) command with ``options``; it ends within ``seconds``."""

    def command(known: Known, params: PingParams) -> HostCommand:
        return HostCommand(("sh", "-c", _ping_script(choose_peers(known, params), options)), timeout=seconds)

    return command


@host_fact(
    "round-trips",
    "losses, duplicates and round trips of 10 pings to an API server, and to another node",
    _ping("-n -q -c 10 -i 0.2 -W 2", 30.0),  # pings, seconds between two, and for the last answer
    needs=_ping_needs,
    params=PingParams,
)
def round_trips(stdout: str, _exit_code: int, _options: PingParams) -> dict[str, dict[str, Any]]:  # 1 if all are lost
    """Mapping by kind of peer: ``{"control-plane": {"address": "10.0.0.1", "sent": 10, "received": 9, "duplicates": 0,
    "mean": 0.2, "longest": 0.3}}``.

    ``mean`` and ``longest`` are in seconds, -1 without an answer. The kinds are ``control-plane`` (the first address of
    an API server) and ``nodes`` (the first one of another node), where there is one; or ``cidr`` with ``networks``,
    ``other-zones`` and ``own-zone`` with ``by=zone``.
    """
    return _parse_pings(stdout)


_COUNT, _SIZE, _HEADERS = 25, 1400, 42  # of Ethernet, IPv4 and ICMP
BURST_BYTES = _COUNT * (_SIZE + _HEADERS)


@host_fact(
    "ping-bursts",
    "round trips of 25 large pings at once to an API server, and to another node: the rate of the line",
    # By default ping(8) lets only a few wait at its socket.
    _ping(f"-n -q -l {_COUNT} -c {_COUNT} -s {_SIZE} -S 200000 -W 10", 45.0),
    needs=_ping_needs,
    params=PingParams,
)
def ping_bursts(stdout: str, _exit_code: int, _options: PingParams) -> dict[str, dict[str, Any]]:  # 1 if all are lost
    """Mapping as that of ``round-trips``, of 25 pings of 1400 bytes that are sent at once: the last waits for all."""
    return _parse_pings(stdout)


_IP_HEADERS = {4: 28, 6: 48}  # of IP and ICMP
_PINGS = "ping -n -q -M do -c 3 -i 0.2 -W 1 -s"  # -M do: not to be fragmented


class MtuPingsParams(PingParams):
    size: int = Field(ge=576, le=9000, description="The size of the packets in bytes, including the IP header.")


def _mtu_pings_command(known: Known, options: MtuPingsParams) -> HostCommand:
    peers = choose_peers(known, options)
    script = "; ".join(_mtu_script(options.size, kind, address) for kind, address in peers.items())
    return HostCommand(("sh", "-c", script), timeout=30.0)


@host_fact(
    "mtu-pings",
    "whether packets of a size reach an API server and another node, and those of one byte more",
    _mtu_pings_command,
    needs=_ping_needs,
    params=MtuPingsParams,
)
def mtu_pings(stdout: str, _exit_code: int, _options: MtuPingsParams) -> dict[str, dict[str, Any]]:  # 1 if one is lost
    """Mapping by kind of peer, as ``round-trips``: ``{"nodes": {"address": "10.0.0.2", "small": 3, "large": 0}}``.

    ``small``: how many of 3 pings of ``size`` bytes were answered; ``large``: of one byte more.
    """
    found = {}
    for (kind, address), counts in count_answers(stdout):
        if len(counts) != 2:
            raise ValueError("ping did not answer twice (package iputils-ping)")
        found[kind] = {"address": address, "small": counts[0], "large": counts[1]}
    return found


def _mtu_script(size: int, kind: str, address: str) -> str:
    size -= _IP_HEADERS[ipaddress.ip_address(address).version]
    return f"echo peer {kind} {address}; {_PINGS} {size} {address}; {_PINGS} {size + 1} {address}"
