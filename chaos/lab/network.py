"""What lies between one machine and the control plane: packets that a firewall on the machine drops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

Family = Literal["ipv4", "ipv6"]
Direction = Literal["in", "out"]
FAMILIES: tuple[Family, ...] = ("ipv4", "ipv6")
DIRECTIONS: tuple[Direction, ...] = ("in", "out")


def addresses_of(index: int, families: tuple[Family, ...]) -> dict[Family, str]:
    """The addresses of the node at ``index`` of the LabSpec, inside the simulated network."""
    both: dict[Family, str] = {"ipv4": f"10.89.0.{index + 2}", "ipv6": f"fd00:10:89::{index + 2:x}"}
    return {family: both[family] for family in families}


class Network:
    """``families``: those in which both ends have an address, the preferred one first. TCP needs both directions.

    ``nodes``: names in order. The API server is on the first control plane, ``server``.
    """

    def __init__(self, families: tuple[Family, ...], nodes: list[str], server: str) -> None:
        self.families, self.server = families, server
        self._names = {name: addresses_of(index, families) for index, name in enumerate(nodes)}
        self.on_change: list[Callable[[], None]] = []
        self._dropped: set[tuple[Family, Direction]] = set()

    @property
    def server_addresses(self) -> dict[Family, str]:
        return self._names[self.server]

    def resolve(self, name: str) -> dict[Family, str]:
        """The addresses of a node or of an address of one; none for any other name."""
        if name in self._names:
            return dict(self._names[name])
        known = [(family, text) for node in self._names.values() for family, text in node.items()]
        return {family: text for family, text in known if text == name}

    def cut(self, families: Iterable[Family] = FAMILIES, directions: Iterable[Direction] = DIRECTIONS) -> None:
        """Drop these packets too, from now on."""
        self.drop_only(self._dropped | {(family, way) for family in families for way in directions})

    def heal(self, families: Iterable[Family] = FAMILIES, directions: Iterable[Direction] = DIRECTIONS) -> None:
        """Let these packets pass again."""
        self.drop_only(self._dropped - {(family, way) for family in families for way in directions})

    def drop_only(self, dropped: set[tuple[Family, Direction]]) -> None:
        """Drop exactly these packets."""
        before, self._dropped = self._dropped, set(dropped)
        if before != self._dropped:
            for call in list(self.on_change):
                call()

    def dropped(self) -> frozenset[tuple[Family, Direction]]:
        return frozenset(self._dropped)

    def passes(self, family: Family) -> bool:
        """Whether a connection over this family can be made."""
        return family in self.families and not any(name == family for name, _ in self._dropped)

    def reachable(self) -> dict[Family, bool]:
        """By family, whether a new connection to the API server would be made."""
        return {family: self.passes(family) for family in self.families}
