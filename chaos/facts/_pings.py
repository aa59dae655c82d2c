"""Facts that ping peers of the host, and what ping(8) prints."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from chaos.facts._nodes import NODES, in_other_zones, label_of, node_addresses
from chaos.model.api_fact import PseudoFact, field, labels_fact
from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import FactRef, HostFact
from chaos.model.labels import ZONE_LABEL

_OWN_ZONE, _OWN_NAME = labels_fact((ZONE_LABEL,)), str(PseudoFact.NODE_NAME)
_PEERS = ("server-addresses", "api-peers", NODES)
_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+) (?:packets )?received(?:, \+(\d+) duplicates)?")
_TIMES = re.compile(r"= [\d.]+/([\d.]+)/([\d.]+)")


class PeersParams(Model):
    """Which peers."""

    networks: str = Field("", description="peers in these networks, with commas, instead of API servers and nodes")
    by: Literal["zone"] | None = Field(None, description="zone: nodes in other zones, and others in the host's own")

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
    """Which of them, too."""

    family: Literal["ipv4", "ipv6"] | None = Field(None, description="only of this address family")


def peer_facts(options: PeersParams | None) -> tuple[str, ...]:
    """References of the facts that the peers are known by."""
    return (*_PEERS, *((_OWN_ZONE,) if options and options.by else ()), _OWN_NAME)


def peers_by_kind(known: Mapping[str, Any], options: PeersParams | None) -> dict[str, list[str]]:
    """Addresses to ping by kind of peer; of networks the known peers in them and the first address of each.

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
    """``labels``, ``name``: of the host's own Node. What it shares with others, as a virtual address, is no peer."""
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
    """Of the host's own Node: also an external one, which a NAT may answer for."""
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
    """For sh(1). What it prints is for :func:`_parse_pings`."""
    return "; ".join(f"echo peer {kind} {address}; ping {options} {address}" for kind, address in peers.items())


def _parse_pings(stdout: str) -> dict[str, dict[str, Any]]:
    """By kind of peer; ``mean`` and ``longest`` in seconds, -1 without an answer. Raises ValueError."""
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
    """Kind and address of each peer, and how many pings were answered, by each ping(8) of it. Raises ValueError."""
    return [(peer, [int(match[2]) for match in _COUNTS.finditer(part)]) for peer, part in _parts(stdout)]


def _parts(stdout: str) -> list[tuple[tuple[str, str], str]]:
    """Kind and address of each peer, and what was printed of it. Raises ValueError."""
    found = []
    for part in stdout.split("peer ")[1:]:
        kind, address = part.split(maxsplit=2)[:2]
        found.append(((kind, address), part))
    if not found:
        raise ValueError("the pings did not run")
    return found


class PingFact(HostFact):
    """A fact that pings peers. ``ping_options``: of ping(8); ``seconds``: within which it ends."""

    needs: tuple[str, ...] = (*_PEERS, _OWN_NAME, "peer-routes")
    params: type[PingParams] = PingParams
    options: PingParams | None
    ping_options: str
    seconds: float

    def bind(self, params: Mapping[str, str]) -> Self:
        bound = super().bind(params)
        bound.needs = (*peer_facts(bound.options), _routes_reference(bound.options))
        return bound

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        script = _ping_script(choose_peers(known, self.options), self.ping_options)
        return HostCommand(("sh", "-c", script), timeout=self.seconds)

    def parse(self, stdout: str, exit_code: int) -> dict[str, dict[str, Any]]:  # noqa: ARG002 - 1 if all are lost
        return _parse_pings(stdout)
