"""What lies between one machine and the control plane: packets that a firewall on the machine drops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

Family = Literal["ipv4", "ipv6"]
Direction = Literal["in", "out"]
FAMILIES: tuple[Family, ...] = ("ipv4", "ipv6")
DIRECTIONS: tuple[Direction, ...] = ("in", "out")


class Network:
    """``families``: those in which both ends have an address, the preferred one first. TCP needs both directions."""

    def __init__(self, families: tuple[Family, ...]) -> None:
        self.families = families
        self.on_change: list[Callable[[], None]] = []
        self._dropped: set[tuple[Family, Direction]] = set()

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
