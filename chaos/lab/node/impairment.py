"""Packets that are delayed or lost on their way from a machine, and what TCP makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

_RTO = 0.2  # tcp(7): the first retransmission on an established connection; each further one after twice the time


@dataclass(frozen=True, slots=True)
class Impairment:
    """Seconds by which each packet is late, and share of packets that are lost, as of tc-netem(8)."""

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    is_normal: bool = False  # the jitter is a standard deviation

    def passes(self, rng: Random) -> bool:
        """Whether one packet arrives."""
        return not self.loss or rng.random() >= self.loss

    def lateness(self, rng: Random) -> float:
        """Seconds by which one packet that arrives is late."""
        if not self.jitter:
            return self.delay
        wait = rng.gauss(self.delay, self.jitter) if self.is_normal else self.delay + self.jitter * rng.uniform(-1, 1)
        return max(0.0, wait)

    def tcp_lateness(self, rng: Random, limit: float) -> float:
        """Seconds until data on an established connection arrives, with retransmissions; from ``limit`` on any."""
        waited, step = 0.0, _RTO
        while waited < limit and not self.passes(rng):
            waited, step = waited + step, 2 * step
        return waited + self.lateness(rng)


UNIMPAIRED = Impairment()
