"""Pings to one peer: an action hits the peers of its plan, but which of them is pinged is chosen from those of now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.core.action import StepRun
from chaos.core.timeline import Fact, Timeline

OWN_ZONE = "own-zone"  # kind of the peers that a fault between zones must not hit


@dataclass(frozen=True, slots=True)
class PingedPeer:
    """A kind of peer, and the address of the one that was pinged last before a step, "" if that is not known."""

    kind: str
    address: str

    def pings(self, reading: Fact) -> dict[str, Any]:
        """Pings to it in a reading; {} without. Recordings of others may have no addresses."""
        found = _pings_to(reading, self.kind)
        return found if not self.address or (found.get("address") or self.address) == self.address else {}


def hit_peer(timeline: Timeline, step: StepRun, fact: str) -> PingedPeer:
    """That which the step hits. ``fact``: reference of that with the pings."""
    return _last_pinged(timeline, step, fact, str(step.params.get("from", "control-plane")))


def own_zone_peer(timeline: Timeline, step: StepRun, fact: str) -> PingedPeer:
    """That in the node's own zone."""
    return _last_pinged(timeline, step, fact, OWN_ZONE)


def pings_before(timeline: Timeline, step: StepRun, fact: str, peer: PingedPeer) -> list[dict[str, Any]]:
    """Pings to a peer before the step."""
    return [value for reading in _before(timeline, step, fact) if (value := peer.pings(reading))]


def _last_pinged(timeline: Timeline, step: StepRun, fact: str, kind: str) -> PingedPeer:
    found = [value for reading in _before(timeline, step, fact) if (value := _pings_to(reading, kind))]
    return PingedPeer(kind, str(found[-1].get("address") or "") if found else "")


def _before(timeline: Timeline, step: StepRun, fact: str) -> list[Fact]:
    return [reading for reading in timeline.readings(step.node, fact) if reading.t <= step.begin]


def _pings_to(reading: Fact, kind: str) -> dict[str, Any]:
    value = reading.value if isinstance(reading.value, dict) else {}
    found = value.get(kind)
    return found if isinstance(found, dict) else {}
