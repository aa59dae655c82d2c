"""Packets that are delayed, lost or changed on their way to or from a machine, and what TCP makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

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
