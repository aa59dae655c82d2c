"""Network between one machine and the control plane, with a firewall on the machine.

Packets that are delayed, lost or changed on their way to or from a machine, and what TCP makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

Family = Literal["ipv4", "ipv6"]
Direction = Literal["in", "out"]
FAMILIES: tuple[Family, ...] = ("ipv4", "ipv6")
DIRECTIONS: tuple[Direction, ...] = ("in", "out")


Addresses = dict[Family, str]


def addresses_of(index: int) -> Addresses:
    """Addresses of the node at ``index`` in the LabSpec, in the simulated network."""
    third, fourth = divmod(index + 2, 256)
    return {"ipv4": f"10.89.{third}.{fourth}", "ipv6": f"fd00:10:89::{index + 2:x}"}


def pod_address(index: int, number: int) -> str:
    """Address in the pod network of the node at ``index``; that of the first node is 10.244.0.0/24."""
    second, third = divmod(index, 256)
    return f"10.{244 + second}.{third}.{number % 250 + 2}"


class Network:
    """``families``: address families of both ends, the preferred one first. TCP needs both directions.

    ``names``: addresses by node. ``server``: the first control plane, which runs the API server.
    """

    def __init__(self, families: tuple[Family, ...], names: Mapping[str, Addresses], server: str) -> None:
        self.families, self.server = families, server
        self._names = names
        self.on_change: list[Callable[[], None]] = []
        self.server_ready_at: Callable[[], float | None] | None = None  # of writes, None: with the request, or never
        self._drops: set[tuple[Family, Direction]] = set()
        self._kubelet_drops: set[tuple[Family, Direction]] | None = None
        self._impairments: dict[Family, Impairment] = {}  # of packets to the API server
        self._inbound: dict[Family, Impairment] = {}  # of packets from it

    @property
    def server_addresses(self) -> dict[Family, str]:
        return self.resolve(self.server)

    def resolve(self, name: str) -> dict[Family, str]:
        """Addresses for the name or an address of a node; empty for other names."""
        if name in self._names:
            return {family: self._names[name][family] for family in self.families}
        known = [(family, node[family]) for node in self._names.values() for family in self.families]
        return {family: text for family, text in known if text == name}

    def drop(self, families: Iterable[Family] = FAMILIES, directions: Iterable[Direction] = DIRECTIONS) -> None:
        """Start dropping these packets as well."""
        self.set_drops(self._drops | {(family, way) for family in families for way in directions})

    def heal(self, families: Iterable[Family] = FAMILIES, directions: Iterable[Direction] = DIRECTIONS) -> None:
        """Stop dropping these packets."""
        self.set_drops(self._drops - {(family, way) for family in families for way in directions})

    def set_drops(
        self, dropped: set[tuple[Family, Direction]], of_kubelet: set[tuple[Family, Direction]] | None = None
    ) -> None:
        """Drop exactly these packets; ``of_kubelet``: of connections to the kubelet's port, None for the same."""
        before, self._drops, self._kubelet_drops = self._drops, set(dropped), of_kubelet
        if before != self._drops:
            for call in list(self.on_change):
                call()

    def impair(self, out: Mapping[Family, Impairment], inbound: Mapping[Family, Impairment] | None = None) -> None:
        """Delay, lose and change exactly these packets to the API server, and those from it, by family."""
        before = self._impairments, self._inbound
        self._impairments = {family: found for family, found in out.items() if found != UNIMPAIRED}
        self._inbound = {family: found for family, found in (inbound or {}).items() if found != UNIMPAIRED}
        if before != (self._impairments, self._inbound):
            for call in list(self.on_change):
                call()

    @property
    def is_impaired(self) -> bool:
        """Whether packets of any family, in any direction, are delayed, lost or changed."""
        return bool(self._impairments or self._inbound)

    def impairments(self) -> dict[Family, Impairment]:
        """The impairments of packets to the API server."""
        return dict(self._impairments)

    def inbound_impairments(self) -> dict[Family, Impairment]:
        """The impairments of packets from the API server."""
        return dict(self._inbound)

    def passes(self, family: Family, rng: Random) -> bool:
        """Whether one packet to the API server and its answer arrive, if none is dropped by a firewall."""
        found = (self._impairments.get(family, UNIMPAIRED), self._inbound.get(family, UNIMPAIRED))
        return all(impairment.passes(rng) for impairment in found)

    def tcp_lateness(self, family: Family, rng: Random, limit: float) -> float:
        """Seconds until data on an established connection arrives at the API server; from ``limit`` on any."""
        found = self._impairments.get(family)
        return found.tcp_lateness(rng, limit) if found else 0.0

    def answer_lateness(self, family: Family, rng: Random, limit: float) -> float:
        """As :meth:`tcp_lateness`, of data from the API server."""
        found = self._inbound.get(family)
        return found.tcp_lateness(rng, limit) if found else 0.0

    def drops(self) -> frozenset[tuple[Family, Direction]]:
        return frozenset(self._drops)

    def can_connect(self, family: Family) -> bool:
        """Whether a connection over this family can be made."""
        return family in self.families and not any(name == family for name, _ in self._drops)

    def can_reach_kubelet(self) -> bool:
        """Whether the API server can connect to the kubelet's port, over the preferred family of the Node."""
        drops = self._drops if self._kubelet_drops is None else self._kubelet_drops
        return not any(name == self.families[0] for name, _ in drops)

    def reachability(self) -> dict[Family, bool]:
        """Whether a new connection to the API server is possible, by family."""
        return {family: self.can_connect(family) for family in self.families}


_RTO = 0.2  # tcp(7): the first retransmission on an established connection; each further one after twice the time
_REQUEST_BITS = 8 * 2000  # of a Lease or a patch of a Node's status, with headers
_HARMLESS = 6 / 98  # of a flipped bit: the sender's MAC address of a ping's 98 bytes, which is not checked


@dataclass(frozen=True, slots=True)
class Impairment:
    """Seconds by which each packet is late, and shares of packets that are lost, changed, doubled; as of tc-netem(8).

    ``rate``: bits a second, 0 for no limit, as of tc-tbf(8).
    """

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    is_normal: bool = False  # the jitter is a standard deviation
    corrupt: float = 0.0
    duplicate: float = 0.0
    rate: float = 0.0

    def drops(self, rng: Random) -> bool:
        """Whether one packet is dropped."""
        return bool(self.loss) and rng.random() < self.loss

    def spoils(self, rng: Random) -> bool:
        """Whether one packet arrives with a wrong checksum."""
        return bool(self.corrupt) and rng.random() < self.corrupt * (1 - _HARMLESS)

    def doubles(self, rng: Random) -> bool:
        """Whether one packet is sent twice."""
        return bool(self.duplicate) and rng.random() < self.duplicate

    def passes(self, rng: Random) -> bool:
        """Whether one packet arrives unchanged."""
        return not self.drops(rng) and not self.spoils(rng)

    def lateness(self, rng: Random, bits: float = 0.0) -> float:
        """Seconds by which one packet of this size that arrives is late."""
        queued = bits / self.rate if self.rate else 0.0
        if not self.jitter:
            return self.delay + queued
        wait = rng.gauss(self.delay, self.jitter) if self.is_normal else self.delay + self.jitter * rng.uniform(-1, 1)
        return max(0.0, wait) + queued

    def tcp_lateness(self, rng: Random, limit: float) -> float:
        """Seconds until data on an established connection arrives, with retransmissions; from ``limit`` on any."""
        waited, step = 0.0, _RTO
        while waited < limit and not self.passes(rng):
            waited, step = waited + step, 2 * step
        return waited + self.lateness(rng, _REQUEST_BITS)


UNIMPAIRED = Impairment()
