"""Queueing disciplines and filters of a host's interface, as far as nodefall sets them with tc(8)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.node.impairment import UNIMPAIRED, Impairment

ROOT, NETEM, BAND = "4e0f:", "4e10:", "4e0f:4"
_PRIOMAP = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
_DELAY = re.compile(
    r"(?:limit (?P<limit>\d+) ?)?(?:delay (?P<delay>[\d.]+)ms(?: (?P<jitter>[\d.]+)ms)?"
    r"(?P<normal> distribution normal)?)? ?(?:loss (?P<loss>[\d.]+)%)?"
)
_FLOWER = re.compile(
    r"protocol ip(?:v6)? pref \d+ flower (?P<tcp>ip_proto tcp )?dst_ip (?P<network>\S+)"
    r"(?: src_port (?P<port>\d+))? classid (?P<band>\S+)"
)


class TrafficError(ValueError):
    """What tc(8) prints for a command that the kernel refuses, or that is not simulated."""


@dataclass(frozen=True, slots=True)
class TrafficFilter:
    """Packets to ``network`` go to ``band``; ``is_tcp``: only those of one TCP connection, which no ping is."""

    network: str
    band: str
    is_tcp: bool


@dataclass
class Traffic:
    """``impairment``: of the band that netem is in, None without netem."""

    interface: str = "eth0"
    has_root: bool = False
    impairment: Impairment | None = None
    filters: list[TrafficFilter] = field(default_factory=list)
    passed: int = 0
    dropped: int = 0

    def add_root(self) -> None:
        if self.has_root:
            raise TrafficError("Error: Exclusivity flag on, cannot modify.")
        self.has_root = True

    def set_netem(self, text: str) -> None:
        """Put netem, with these parameters, into the fourth band."""
        match = _DELAY.fullmatch(text)
        if match is None or not self.has_root:
            raise TrafficError(f'What is "{text}"?' if self.has_root else "Error: Failed to find specified qdisc.")
        self.impairment = Impairment(
            float(match["delay"] or 0) / 1000,
            float(match["jitter"] or 0) / 1000,
            float(match["loss"] or 0) / 100,
            bool(match["normal"]),
        )

    def add_filter(self, text: str) -> None:
        match = _FLOWER.fullmatch(text)
        if match is None or not self.has_root:
            raise TrafficError(f'What is "{text}"?' if self.has_root else "Error: Parent Qdisc doesn't exists.")
        self.filters.append(TrafficFilter(match["network"], match["band"], bool(match["tcp"])))

    def delete_root(self, handle: str) -> None:
        """Delete the root and all below it; the kernel's default returns."""
        if not self.has_root or handle != ROOT:
            raise TrafficError("Error: Invalid handle.")
        self.has_root, self.impairment, self.passed, self.dropped = False, None, 0, 0
        self.filters.clear()

    def impairment_to(self, address: str) -> Impairment:
        """Of packets to an address; of those of the exempt connection there are none."""
        target = ipaddress.ip_address(address)
        found = next(
            (f for f in self.filters if not f.is_tcp and target in ipaddress.ip_network(f.network, strict=False)), None
        )
        return self.impairment if self.impairment and found and found.band == BAND else UNIMPAIRED

    def rows(self, *, with_counters: bool) -> list[dict[str, Any]]:
        """As ``tc -j qdisc show`` prints them; netem's counters are those of pings."""
        root: dict[str, Any] = {"handle": "0:", "dev": self.interface, "root": True, "refcnt": 2}
        if not self.has_root:
            options = {"bands": 3, "priomap": _PRIOMAP, "multiqueue": False}
            return [{"kind": "pfifo_fast", **root, "options": options}]
        options = {"bands": 4, "priomap": _PRIOMAP, "multiqueue": False}
        rows = [{"kind": "prio", **root, "handle": ROOT, "options": options}]
        if self.impairment is not None:
            counters = {"packets": self.passed, "drops": self.dropped} if with_counters else {}
            rows.append({"kind": "netem", "handle": NETEM, "dev": self.interface, "parent": BAND, **counters})
        return rows
