"""Queueing disciplines and filters of a host's interface, as far as nodefall sets them with tc(8) and ip(8)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from random import Random
from typing import Any

from chaos.lab.node.network import UNIMPAIRED, Impairment

ROOT, EFFECT, BAND = "4e0f:", "4e10:", "4e0f:4"
INGRESS, IFB = "ffff:", "nodefall0"
_PRIOMAP = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
_NETEM = re.compile(
    r"netem(?: limit \d+)?(?: delay (?P<delay>[\d.]+)ms(?: (?P<jitter>[\d.]+)ms)?(?P<normal> distribution normal)?)?"
    r"(?: loss (?P<loss>[\d.]+)%)?(?: corrupt (?P<corrupt>[\d.]+)%)?(?: duplicate (?P<duplicate>[\d.]+)%)?"
)
_TBF = re.compile(r"tbf rate (?P<rate>\d+)bit burst \d+ limit \d+")
_FLOWER = re.compile(
    r"protocol (?P<protocol>ipv?6?) pref (?P<pref>\d+) flower"
    r"(?: ip_proto (?P<of>tcp|icmpv6)(?: type \d+)?)?(?: (?:dst|src)_ip (?P<network>\S+))?"
    r"(?: (?:src|dst)_port \d+)? (?:classid (?P<band>\S+)|action (?P<action>pass|mirred egress redirect dev \S+))"
)


class TrafficError(ValueError):
    """The output of tc(8) for a command that the kernel refuses, or that is not simulated."""


@dataclass(frozen=True, slots=True)
class TrafficFilter:
    """Whether packets to or from ``network`` are hit; ``is_narrow``: only some of them, which no ping is."""

    key: str  # protocol and preference
    network: str
    hits: bool
    is_narrow: bool


@dataclass
class Path:
    """Packets in one direction. ``impairment``: of those that filters choose, None without a qdisc that does it."""

    kind: str = ""  # of that qdisc
    impairment: Impairment | None = None
    filters: list[TrafficFilter] = field(default_factory=list)
    passed: int = 0
    dropped: int = 0

    def set_effect(self, text: str) -> None:
        """Put netem or tbf, with these parameters, where packets are sent that filters choose."""
        self.kind, self.impairment = text.split(maxsplit=1)[0], parse_effect(text)

    def clear(self) -> None:
        self.kind, self.impairment, self.passed, self.dropped = "", None, 0, 0
        self.filters.clear()

    def impairment_of(self, address: str) -> Impairment:
        """Of packets to or from an address; of those of the exempt connection there are none."""
        target = ipaddress.ip_address(address)
        found = next((f for f in self.filters if not f.is_narrow and target in ipaddress.ip_network(f.network)), None)
        return self.impairment if self.impairment and found and found.hits else UNIMPAIRED

    def pass_ping(self, address: str, rng: Random, bits: float) -> tuple[float | None, bool]:
        """Seconds by which a ping is late, None if it does not arrive, and whether another one like it does."""
        found = self.impairment_of(address)
        if found is UNIMPAIRED:
            return 0.0, False
        if found.drops(rng):
            self.dropped += 1
            return None, False
        self.passed += 1
        return (None if found.spoils(rng) else found.lateness(rng, bits)), found.doubles(rng)


def parse_effect(text: str) -> Impairment:
    """Raises TrafficError."""
    if match := _TBF.fullmatch(text):
        return Impairment(rate=float(match["rate"]))
    match = _NETEM.fullmatch(text)
    if match is None:
        raise TrafficError(f'What is "{text}"?')
    shares = {name: float(match[name] or 0) / 100 for name in ("loss", "corrupt", "duplicate")}
    times = {name: float(match[name] or 0) / 1000 for name in ("delay", "jitter")}
    return Impairment(**times, **shares, is_normal=bool(match["normal"]))


@dataclass
class Traffic:
    """``has_ifb``: the device nodefall0, whose root makes the effect on inbound packets."""

    interface: str = "eth0"
    has_root: bool = False
    has_ingress: bool = False
    has_ifb: bool = False
    out: Path = field(default_factory=Path)
    inbound: Path = field(default_factory=Path)
    others: list[str] = field(default_factory=list)  # further qdiscs, as tc shows them, of the trial of what works

    def add_root(self) -> None:
        if self.has_root:
            raise TrafficError("Error: Exclusivity flag on, cannot modify.")
        self.has_root = True

    def add_ingress(self) -> None:
        if self.has_ingress:
            raise TrafficError("Error: Exclusivity flag on, cannot modify.")
        self.has_ingress = True

    def set_effect(self, parent: str, handle: str, text: str) -> None:
        """``parent``: a band of the root."""
        if not self.has_root:
            raise TrafficError("Error: Failed to find specified qdisc.")
        if (parent, handle) == (BAND, EFFECT):
            self.out.set_effect(text)
        else:
            parse_effect(text)
            self.others.append(f"qdisc {text.split(maxsplit=1)[0]} {handle} parent {parent}")

    def add_filter(self, parent: str, text: str) -> None:
        match = _FLOWER.fullmatch(text)
        has_parent = self.has_root if parent == ROOT else self.has_ingress
        if match is None or not has_parent:
            raise TrafficError(f'What is "{text}"?' if has_parent else "Error: Parent Qdisc doesn't exists.")
        action = match["action"] or ""
        if action.endswith(IFB) and not self.has_ifb:
            raise TrafficError("Error: mirred device not found")
        key = f"protocol {match['protocol']} pref {match['pref']}"
        hits = match["band"] == BAND or action.startswith("mirred")
        network = match["network"] or ("0.0.0.0/0" if match["protocol"] == "ip" else "::/0")
        (self.out if parent == ROOT else self.inbound).filters.append(
            TrafficFilter(key, network, hits, bool(match["of"]))
        )

    def delete_root(self, handle: str) -> None:
        """Delete the root and all below it; the kernel's default returns."""
        if not self.has_root or handle != ROOT:
            raise TrafficError("Error: Invalid handle.")
        self.has_root = False
        self.out.clear()

    def delete_filters(self, key: str) -> None:
        """Delete inbound filters by protocol and preference."""
        others = [known for known in self.inbound.filters if known.key != key]
        if not self.has_ingress or len(others) == len(self.inbound.filters):
            raise TrafficError("Error: Filter with specified priority/protocol not found.")
        self.inbound.filters[:] = others

    def delete_ingress(self) -> None:
        if not self.has_ingress:
            raise TrafficError("Error: Cannot find specified qdisc on specified device.")
        self.has_ingress = False
        self.inbound.filters.clear()

    def add_ifb(self) -> None:
        if self.has_ifb:
            raise TrafficError("RTNETLINK answers: File exists")
        self.has_ifb = True

    def delete_ifb(self) -> None:
        if not self.has_ifb:
            raise TrafficError(f'Cannot find device "{IFB}"')
        self.has_ifb = False
        self.inbound.clear()

    def rows(self, *, with_counters: bool) -> list[dict[str, Any]]:
        """As ``tc -j qdisc show`` prints them; counters are those of pings."""
        root: dict[str, Any] = {"handle": "0:", "dev": self.interface, "root": True, "refcnt": 2}
        bands = {"bands": 4 if self.has_root else 3, "priomap": _PRIOMAP, "multiqueue": False}
        changed = {"kind": "prio", "handle": ROOT} if self.has_root else {"kind": "pfifo_fast"}
        rows = [{**root, **changed, "options": bands}]
        if self.out.kind:
            place = {"dev": self.interface, "parent": BAND}
            rows.append({"kind": self.out.kind, "handle": EFFECT, **place, **_counters(self.out, with_counters)})
        if self.has_ingress:
            place = {"dev": self.interface, "parent": "ffff:fff1"}
            rows.append({"kind": "ingress", "handle": INGRESS, **place, "options": {}})
        if self.has_ifb:
            kind = {"kind": self.inbound.kind, "handle": EFFECT} if self.inbound.kind else {"kind": "pfifo_fast"}
            rows.append({**root, "dev": IFB, **kind, **_counters(self.inbound, with_counters)})
        return rows


def _counters(path: Path, is_wanted: bool) -> dict[str, int]:
    return {"packets": path.passed, "drops": path.dropped} if is_wanted else {}
