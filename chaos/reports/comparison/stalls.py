"""Times in which the API server or its clients stood still: no Lease of a healthy node was renewed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chaos.core.timeline import Timeline

_PERIOD = 10.4  # seconds between two renewals of a Lease (facts 5.1)
_GAP = 15.0  # seconds; five seconds later than usual


@dataclass(frozen=True, slots=True)
class Stall:
    """No Lease of most untouched nodes was renewed for ``length`` seconds from ``at``, in seconds after the fault."""

    at: float
    length: float
    nodes: int
    of: int

    def __str__(self) -> str:
        return (
            f"{self.nodes} of {self.of} untouched nodes did not renew their Leases for {self.length:.0f} s, "
            f"{max(0.0, self.at):.0f} s after the fault: the API server or its clients stood still"
        )


def stalled_before(stalls: Sequence[Stall], seconds: float) -> float:
    """Seconds by which stalls may have delayed what happened then."""
    return sum(min(stall.length, seconds - max(0.0, stall.at)) for stall in stalls if stall.at < seconds)


def stalls_of(timeline: Timeline, start: float) -> Iterator[Stall]:
    """Each gap in the Leases of most nodes that no step touches, after ``start``."""
    victims = set(timeline.meta.get("targets") or {}) | {entry.node for entry, _ in timeline.actions if entry.node}
    healthy = [
        [version.t for version in history.peek() if version.t >= start - _PERIOD]
        for name, history in timeline.leases.items()
        if name not in victims
    ]
    gaps = [
        [(before, after) for before, after in pairwise(times) if after - before > _GAP] for times in healthy if times
    ]
    for before, after in gaps[0] if gaps else ():
        common = sum(any(b < after and a > before for b, a in other) for other in gaps)
        if 2 * common > len(gaps):
            yield Stall(before - start, after - before, common, len(gaps))
